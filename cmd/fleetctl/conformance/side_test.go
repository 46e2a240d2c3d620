//go:build e2e

package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/embedded"
	"github.com/fleetctl/fleetctl/pkg/host/kind"
)

// The environment that `make conformance` sets.
const (
	envProgram  = "FLEETCTL_E2E_PROGRAM"  // a fleetctl: the embedded host's supervisor is one
	envBundle   = "FLEETCTL_E2E_BUNDLE"   // an offline bundle
	envPrograms = "FLEETCTL_E2E_PROGRAMS" // the folder with the peers' own clusterctl, kubectl and helm
)

// nodeImage carries the kind side.
const nodeImage = "docker.io/kindest/node:v1.36.3"

func TestMain(m *testing.M) {
	for _, name := range []string{envProgram, envBundle, envPrograms} {
		if os.Getenv(name) == "" {
			fmt.Fprintf(os.Stderr, "%s is not set: run this with `make conformance`\n", name)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// side is one host with the stock programs pointed at it.
type side struct {
	host       host.Host
	stateDir   string
	dir        string // clusterctl's files
	kubeconfig string
	dynamic    dynamic.Interface
	discovery  *discovery.DiscoveryClient
	before     snapshot // what a bare host has
}

// newSides makes the two hosts at the same time, with all images that clusterctl's components name.
func newSides(t *testing.T) (onEmbedded, onKind *side) {
	t.Helper()
	base := t.TempDir()
	made, err := bundle.Open(t.Context(), os.Getenv(envBundle))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close() }) // it was only read
	repository := newRepository(t, made, filepath.Join(base, "clusterctl"))
	e, err := embedded.New("conformance", embedded.Options{
		StateDir: filepath.Join(base, "embedded"), ImageDir: filepath.Join(base, "images"),
		Executable: os.Getenv(envProgram), Args: []string{"host", "run"},
	})
	if err != nil {
		t.Fatal(err)
	}
	k, err := kind.New(t.Context(), "conformance", kind.Options{StateDir: filepath.Join(base, "kind")})
	if err != nil {
		t.Fatal(err)
	}
	onEmbedded = &side{host: e, dir: repository, stateDir: filepath.Join(base, "embedded")}
	onKind = &side{host: k, dir: repository, stateDir: filepath.Join(base, "kind")}
	for _, s := range []*side{onEmbedded, onKind} {
		t.Cleanup(func() { s.remove(t) })
	}
	both(t, "make the hosts", onEmbedded, onKind, func(ctx context.Context, s *side) error {
		return s.create(ctx, made, filepath.Join(base, fmt.Sprintf("%T.kubeconfig", s.host)))
	})
	return onEmbedded, onKind
}

// both does the same on the two sides, and tells how long each took.
func both(t *testing.T, what string, one, other *side, do func(ctx context.Context, s *side) error) {
	t.Helper()
	failed := make(chan error, 2)
	for _, s := range []*side{one, other} {
		go func() {
			begin := time.Now()
			err := do(t.Context(), s)
			if err != nil {
				err = fmt.Errorf("%s on %T: %w", what, s.host, err)
			}
			fmt.Fprintf(os.Stderr, "    %s on %T: %.1fs\n", what, s.host, time.Since(begin).Seconds())
			failed <- err
		}()
	}
	if err := errors.Join(<-failed, <-failed); err != nil {
		t.Fatal(err)
	}
}

func (s *side) create(ctx context.Context, made *bundle.Bundle, kubeconfig string) error {
	var names []string
	for _, e := range made.Images() {
		if wanted := strings.Contains(e.Name, "cluster-api") || strings.Contains(e.Name, "cert-manager"); wanted {
			names = append(names, e.Name)
		}
	}
	err := s.host.Create(ctx, host.CreateOptions{
		Image: nodeImage, NodeImage: made.Archive(),
		Images: func(context.Context) (host.ImageArchive, error) { return made.Archive(names...), nil },
	})
	if err != nil {
		return err
	}
	raw, err := s.host.Kubeconfig(ctx)
	if err != nil {
		return err
	}
	s.kubeconfig = kubeconfig
	if err := os.WriteFile(kubeconfig, raw, 0o600); err != nil {
		return err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		return err
	}
	config.QPS, config.Burst, config.WarningHandler = 200, 400, rest.NoWarnings{}
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	if s.discovery, err = discovery.NewDiscoveryClientForConfig(config); err != nil {
		return err
	}
	s.before, err = s.look(ctx)
	return err
}

// remove is for the end of the test, whatever came before.
func (s *side) remove(t *testing.T) {
	if left, err := s.host.Delete(context.Background()); err != nil || len(left) > 0 {
		t.Errorf("delete the %T: %v, left %v", s.host, err, left)
	}
}

// run runs one of the stock programs against this side and returns what it prints.
func (s *side) run(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(os.Getenv(envPrograms), program), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "CLUSTER_TOPOLOGY=true", "XDG_CONFIG_HOME="+s.dir)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

func (s *side) clusterctl(ctx context.Context, args ...string) (string, error) {
	return s.run(ctx, "clusterctl", append(args, "--config", filepath.Join(s.dir, "clusterctl.yaml"))...)
}

// The release that an upgrade goes to: the same components, but the core manager has an argument more, and comes with an object more.
const (
	nextVersion  = "v1.14.99"
	nextArgument = "--v=1"
	nextObject   = "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: next-release\n  namespace: capi-system\n" +
		"  labels:\n    cluster.x-k8s.io/provider: cluster-api\ndata:\n  version: " + nextVersion + "\n"
)

// newRepository lays the bundle's manifests out for clusterctl, with a newer release of what an upgrade takes.
func newRepository(t *testing.T, made *bundle.Bundle, dir string) string {
	t.Helper()
	if err := made.WriteFiles(t.Context(), filepath.Join(dir, "manifests"), ""); err != nil {
		t.Fatal(err)
	}
	config := "providers:\n"
	for _, p := range []struct{ name, kind, folder, file string }{
		{"cluster-api", "CoreProvider", "cluster-api", "core-components.yaml"},
		{"kubeadm", "BootstrapProvider", "bootstrap-kubeadm", "bootstrap-components.yaml"},
		{"kubeadm", "ControlPlaneProvider", "control-plane-kubeadm", "control-plane-components.yaml"},
		{"docker", "InfrastructureProvider", "infrastructure-docker", "infrastructure-components-development.yaml"},
	} {
		version := only(t, filepath.Join(dir, "manifests", "providers", p.folder, "*"))
		config += fmt.Sprintf("- name: %s\n  type: %s\n  url: %s/%s\n", p.name, p.kind, version, p.file)
		if p.kind == "InfrastructureProvider" {
			continue
		}
		if err := os.CopyFS(filepath.Join(filepath.Dir(version), nextVersion), os.DirFS(version)); err != nil {
			t.Fatal(err)
		}
		if p.kind == "CoreProvider" {
			change(t, filepath.Join(filepath.Dir(version), nextVersion, p.file))
		}
	}
	certs := only(t, filepath.Join(dir, "manifests", "cert-manager", "*", "cert-manager.yaml"))
	config += fmt.Sprintf("cert-manager:\n  url: %s\n  version: %s\n", certs, filepath.Base(filepath.Dir(certs)))
	if err := os.WriteFile(filepath.Join(dir, "clusterctl.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// change makes the next release of the core provider another one.
func change(t *testing.T, components string) {
	t.Helper()
	raw, err := os.ReadFile(components)
	if err != nil {
		t.Fatal(err)
	}
	const argument = "        - --leader-elect\n"
	if n := bytes.Count(raw, []byte(argument)); n != 1 {
		t.Fatalf("%s: %d places for an argument, want one", components, n)
	}
	raw = bytes.Replace(raw, []byte(argument), []byte(argument+"        - "+nextArgument+"\n"), 1)
	if err := os.WriteFile(components, append(raw, nextObject...), 0o600); err != nil {
		t.Fatal(err)
	}
}

func only(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v; want one", pattern, found, err)
	}
	return found[0]
}

// eventually repeats check until it returns nil, and returns its last error after limit.
func eventually(ctx context.Context, limit time.Duration, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", limit, err)
		case <-time.After(time.Second):
		}
	}
}

// difference tells what only one of two has, and what it has more of.
func difference(one, other []string) string {
	left := slices.Clone(other)
	var out []string
	for _, s := range one {
		if i := slices.Index(left, s); i >= 0 {
			left = slices.Delete(left, i, i+1)
		} else {
			out = append(out, "only with embedded: "+s)
		}
	}
	for _, s := range left {
		out = append(out, "only with kind:     "+s)
	}
	return strings.Join(out, "\n")
}
