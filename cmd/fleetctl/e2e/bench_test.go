//go:build e2e

package e2e

import (
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

// envPrograms is the folder with the peers' own programs: kind, clusterctl and kubectl.
const envPrograms = "FLEETCTL_E2E_PROGRAMS"

// BenchmarkInit measures fleetctl init against the peers' own programs in sequence, with the same images and manifests, up to the same
// point: the first Git revision applied. Both begin with the node image in the engine. Run it with `make bench-init`.
func BenchmarkInit(b *testing.B) {
	programs := os.Getenv(envPrograms)
	if programs == "" {
		b.Fatalf("%s is not set: run this with `make bench-init`", envPrograms)
	}
	f := &fleet{t: nil, name: "bench-init", dir: filepath.Join(b.TempDir(), "bench-init")}
	f.state, f.home = filepath.Join(b.TempDir(), "state"), b.TempDir()
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		b.Fatal(err)
	}
	p := &peers{b: b, fleet: f, programs: programs, dir: b.TempDir()}
	p.prepare()
	syscall.Sync() // else what was just written goes to disk while the first of the two is measured
	for b.Loop() {
		ours := p.timed("fleetctl init", func() { p.run(f.command(initArgs("--quiet")...)) })
		p.readRepo()
		p.run(f.command("teardown", "--quiet"))
		theirs := p.timed("the peers in sequence", p.sequence)
		p.run(p.command("kind", "delete", "cluster", "--name", p.name()))
		fmt.Printf("fleetctl init %.1fs, peers %.1fs\n", ours.Seconds(), theirs.Seconds())
		fmt.Printf("ratio init %.2f\n", theirs.Seconds()/ours.Seconds())
	}
}

// peers runs kind, clusterctl and kubectl one after the other, as their documentation has it.
type peers struct {
	b        *testing.B
	fleet    *fleet
	programs string
	dir      string
	images   string // an archive, as docker save makes it
}

func (p *peers) name() string       { return "bench-peers" }
func (p *peers) kubeconfig() string { return filepath.Join(p.dir, "kubeconfig") }

func (p *peers) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.programs, program), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig(), "CLUSTER_TOPOLOGY=true", "XDG_CONFIG_HOME="+p.dir)
	return cmd
}

func (p *peers) run(cmd *exec.Cmd) {
	p.b.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		p.b.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
}

func (p *peers) timed(what string, do func()) time.Duration {
	begin := time.Now()
	do()
	took := time.Since(begin)
	fmt.Printf("%s: %.1fs\n", what, took.Seconds())
	return took
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

// sequence is the peers' whole way: each program ends before the next begins.
func (p *peers) sequence() {
	p.run(p.command("kind", "create", "cluster", "--name", p.name(), "--image", "kindest/node:"+kubernetesVersion))
	p.run(p.command("kind", "load", "image-archive", p.images, "--name", p.name()))
	p.run(p.command("clusterctl", "init", "--config", filepath.Join(p.dir, "clusterctl.yaml"), "--wait-providers",
		"--core", "cluster-api", "--bootstrap", "kubeadm", "--control-plane", "kubeadm", "--infrastructure", "docker"))
	system := filepath.Join(p.dir, "flux-system")
	p.run(p.command("kubectl", "apply", "--server-side", "-f", filepath.Join(system, "gotk-components.yaml")))
	p.run(p.command("kubectl", "-n", "flux-system", "rollout", "status", "deployment", "--timeout=5m"))
	p.run(p.command("kubectl", "apply", "-f", filepath.Join(system, "secret.yaml"), "-f", filepath.Join(system, "gotk-sync.yaml")))
	p.run(p.command("kubectl", "-n", "flux-system", "wait", "--for=condition=Ready", "--timeout=5m",
		"gitrepository/flux-system", "kustomization/flux-system"))
}

// readRepo takes Flux's manifests as init has committed them, and serves the same repository to the peers' Flux.
func (p *peers) readRepo() {
	listener, err := net.Listen("tcp", net.JoinHostPort(reachable(p.b), "0"))
	if err != nil {
		p.b.Fatal(err)
	}
	handler := gitserve.Handler(p.fleet.dir, gitserve.Credentials{Username: "flux", Password: "bench"}, slog.New(slog.DiscardHandler))
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // ends with Close
	p.b.Cleanup(func() { _ = server.Close() })

	system := filepath.Join(p.dir, "flux-system")
	if err := os.MkdirAll(system, 0o755); err != nil {
		p.b.Fatal(err)
	}
	for _, name := range []string{"gotk-components.yaml", "gotk-sync.yaml"} {
		raw, err := os.ReadFile(filepath.Join(p.fleet.dir, "providers/docker/v1/mgmt/flux-system", name))
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
	secret := "apiVersion: v1\nkind: Secret\nmetadata:\n  name: flux-system\n  namespace: flux-system\nstringData:\n  username: flux\n  password: bench\n"
	if err := os.WriteFile(filepath.Join(system, "secret.yaml"), []byte(secret), 0o600); err != nil {
		p.b.Fatal(err)
	}
}
