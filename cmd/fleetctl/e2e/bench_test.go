//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/gitserve"
)

// BenchmarkInit measures fleetctl init on each host against the peers' own programs in sequence, with the same images and manifests, up
// to the same point: the first Git revision applied, providers and Flux Ready. All begin with their images on this machine: a node image in
// the engine, or programs unpacked. Run it with `make bench-init`.
func BenchmarkInit(b *testing.B) {
	warm(b)
	for b.Loop() {
		embedded := measureInit(b, onEmbedded, nil)
		p := &peers{b: b, programs: programsDir(b), dir: b.TempDir()}
		p.prepare()
		syscall.Sync() // else what was just written goes to disk while the next one is measured
		kind := measureInit(b, onKind, func(f *fleet) { p.readRepo(f.dir) })
		theirs := p.measure()
		fmt.Printf("fleetctl init, embedded    %s\n", embedded)
		fmt.Printf("fleetctl init, kind        %s\n", kind)
		fmt.Printf("the peers' sequence, kind  %s\n", theirs)
		fmt.Printf("ratio init %.2f\n", theirs.seconds/kind.seconds)
		fmt.Printf("ratio init-embedded %.2f\n", theirs.seconds/embedded.seconds)
	}
}

// warm unpacks the programs of the embedded host by making one and removing it again.
func warm(b *testing.B) {
	b.Helper()
	f := makeFleet(b, onEmbedded, "bench-warm")
	run(b, f.command(initArgs("--quiet")...))
	run(b, f.command("teardown", "--quiet"))
}

// measureInit makes a management cluster, calls look while it is there, and removes it.
func measureInit(b *testing.B, on hostCase, look func(f *fleet)) footprint {
	b.Helper()
	f := makeFleet(b, on, "bench-init")
	container := ""
	if on.name == onKind.name {
		container = f.name + "-control-plane"
	}
	stop := watch(b, f.base, container)
	begin := time.Now()
	out := run(b, f.command(initArgs("--quiet")...))
	p := footprint{seconds: time.Since(begin).Seconds()}
	p.peak = stop()
	var made initResult
	if err := json.Unmarshal(out, &made); err != nil {
		b.Fatal(err)
	}
	p.calls, p.writes = apiCalls(b, made.Kubeconfig)
	if look != nil {
		look(f)
	}
	run(b, f.command("teardown", "--quiet"))
	return p
}

// run runs a command, and returns what it said on standard output.
func run(b *testing.B, cmd *exec.Cmd) []byte {
	b.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, stderr.String(), out)
	}
	return out
}

// peers runs kind, clusterctl and kubectl one after the other, as their documentation says.
type peers struct {
	b        *testing.B
	programs string
	dir      string
	images   string // an archive, as docker save makes it
}

func (p *peers) name() string       { return "bench-peers" }
func (p *peers) kubeconfig() string { return filepath.Join(p.dir, "kubeconfig") }

func (p *peers) run(program string, args ...string) {
	p.b.Helper()
	cmd := exec.Command(filepath.Join(p.programs, program), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig(), "CLUSTER_TOPOLOGY=true", "XDG_CONFIG_HOME="+p.dir)
	run(p.b, cmd)
}

// prepare makes, outside of the measurement, what the peers start from: an archive of the images, provider repositories.
func (p *peers) prepare() {
	b := p.b
	made, err := bundle.Open(b.Context(), os.Getenv(envBundle))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = made.Close() }() // it was only read
	var names []string
	for _, e := range made.Images() {
		if !strings.Contains(e.Name, "kindest/") {
			names = append(names, e.Name)
		}
	}
	p.images = filepath.Join(p.dir, "images.tar")
	archive, err := os.Create(p.images)
	if err != nil {
		b.Fatal(err)
	}
	if err := errors.Join(made.Archive(names...).WriteArchive(b.Context(), archive), archive.Close()); err != nil {
		b.Fatal(err)
	}
	if err := made.WriteFiles(b.Context(), filepath.Join(p.dir, "manifests"), ""); err != nil {
		b.Fatal(err)
	}
	p.configure()
}

// configure tells clusterctl where the bundle's manifests are.
func (p *peers) configure() {
	config := "providers:\n"
	for label, file := range map[string]string{
		"cluster-api:CoreProvider":                     "core-components.yaml",
		"bootstrap-kubeadm:BootstrapProvider":          "bootstrap-components.yaml",
		"control-plane-kubeadm:ControlPlaneProvider":   "control-plane-components.yaml",
		"infrastructure-docker:InfrastructureProvider": "infrastructure-components-development.yaml",
	} {
		folder, kind, _ := strings.Cut(label, ":")
		name := folder[strings.LastIndex(folder, "-")+1:]
		if folder == "cluster-api" {
			name = folder
		}
		versions, err := filepath.Glob(filepath.Join(p.dir, "manifests", "providers", folder, "*"))
		if err != nil || len(versions) != 1 {
			p.b.Fatalf("versions of %s: %v, %v", folder, versions, err)
		}
		config += fmt.Sprintf("- name: %s\n  type: %s\n  url: %s/%s\n", name, kind, versions[0], file)
	}
	certs, err := filepath.Glob(filepath.Join(p.dir, "manifests", "cert-manager", "*", "cert-manager.yaml"))
	if err != nil || len(certs) != 1 {
		p.b.Fatalf("cert-manager: %v, %v", certs, err)
	}
	config += fmt.Sprintf("cert-manager:\n  url: %s\n  version: %s\n", certs[0], filepath.Base(filepath.Dir(certs[0])))
	if err := os.WriteFile(filepath.Join(p.dir, "clusterctl.yaml"), []byte(config), 0o600); err != nil {
		p.b.Fatal(err)
	}
}

// measure is the peers' whole way: each program ends before the next begins.
func (p *peers) measure() footprint {
	stop := watch(p.b, p.dir, p.name()+"-control-plane")
	begin := time.Now()
	p.sequence()
	f := footprint{seconds: time.Since(begin).Seconds()}
	f.peak = stop()
	f.calls, f.writes = apiCalls(p.b, p.kubeconfig())
	p.run("kind", "delete", "cluster", "--name", p.name())
	return f
}

func (p *peers) sequence() {
	p.run("kind", "create", "cluster", "--name", p.name(), "--image", "kindest/node:"+kubernetesVersion)
	p.run("kind", "load", "image-archive", p.images, "--name", p.name())
	p.run("clusterctl", "init", "--config", filepath.Join(p.dir, "clusterctl.yaml"), "--wait-providers",
		"--core", "cluster-api", "--bootstrap", "kubeadm", "--control-plane", "kubeadm", "--infrastructure", "docker")
	system := filepath.Join(p.dir, "flux-system")
	p.run("kubectl", "apply", "--server-side", "-f", filepath.Join(system, "gotk-components.yaml"))
	p.run("kubectl", "-n", "flux-system", "rollout", "status", "deployment", "--timeout=5m")
	p.run("kubectl", "apply", "-f", filepath.Join(system, "secret.yaml"), "-f", filepath.Join(system, "gotk-sync.yaml"))
	p.run("kubectl", "-n", "flux-system", "wait", "--for=condition=Ready", "--timeout=5m",
		"gitrepository/flux-system", "kustomization/flux-system")
}

// readRepo takes Flux's manifests as init has committed them in the folder, and serves the same repository to the peers' Flux.
func (p *peers) readRepo(dir string) {
	listener, err := net.Listen("tcp", net.JoinHostPort(reachable(p.b), "0"))
	if err != nil {
		p.b.Fatal(err)
	}
	handler := gitserve.NewHandler(dir, gitserve.Credentials{Username: "flux", Password: "bench"}, slog.New(slog.DiscardHandler))
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // ends with Close
	p.b.Cleanup(func() { _ = server.Close() })

	system := filepath.Join(p.dir, "flux-system")
	if err := os.MkdirAll(system, 0o755); err != nil {
		p.b.Fatal(err)
	}
	for _, name := range []string{"gotk-components.yaml", "gotk-sync.yaml"} {
		raw, err := os.ReadFile(filepath.Join(dir, "providers/docker/v1/mgmt/flux-system", name))
		if err != nil {
			p.b.Fatal(err)
		}
		text := string(raw)
		if at := strings.Index(text, "url: http"); name == "gotk-sync.yaml" && at > 0 {
			end := at + strings.IndexByte(text[at:], '\n')
			text = text[:at] + "url: http://" + listener.Addr().String() + gitserve.RepoPath + text[end:]
		}
		if err := os.WriteFile(filepath.Join(system, name), []byte(text), 0o600); err != nil {
			p.b.Fatal(err)
		}
	}
	secret := "apiVersion: v1\nkind: Secret\nmetadata:\n  name: flux-system\n  namespace: flux-system\nstringData:\n  username: flux\n  " +
		"password: bench\n"
	if err := os.WriteFile(filepath.Join(system, "secret.yaml"), []byte(secret), 0o600); err != nil {
		p.b.Fatal(err)
	}
}
