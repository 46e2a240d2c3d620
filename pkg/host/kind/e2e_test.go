//go:build e2e

package kind_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/engine"
	"github.com/fleetctl/fleetctl/pkg/host/hosttest"
	"github.com/fleetctl/fleetctl/pkg/host/internal/apiserver"
	"github.com/fleetctl/fleetctl/pkg/host/kind"
)

// These tests make real clusters on the engine that answers. FLEETCTL_E2E_NODE_IMAGE names the node image; empty takes
// kind's own.

const prefix = "hosttest-"

// childVariable makes the test program create that cluster and nothing else, so that a test can kill it.
const childVariable = "FLEETCTL_E2E_CREATE"

func TestMain(m *testing.M) {
	if name := os.Getenv(childVariable); name != "" {
		h, err := kind.New(context.Background(), name, kind.Options{StateDir: os.Getenv("FLEETCTL_E2E_STATE")})
		if err == nil {
			err = h.Create(context.Background(), options(nil))
		}
		if err != nil {
			println(err.Error())
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func options(t *testing.T) host.CreateOptions {
	opts := host.CreateOptions{Image: os.Getenv("FLEETCTL_E2E_NODE_IMAGE")}
	if t != nil {
		begin := time.Now()
		opts.Detail = func(s string) { t.Logf("%5.1fs %s", time.Since(begin).Seconds(), s) }
	}
	return opts
}

// open returns a host that is deleted when the test ends.
func open(t *testing.T, name string) (h *kind.Host, stateDir string) {
	t.Helper()
	stateDir = filepath.Join(t.TempDir(), "clusters", name)
	h, err := kind.New(t.Context(), prefix+name, kind.Options{StateDir: stateDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := h.Delete(context.Background()); err != nil || len(left) > 0 {
			t.Errorf("clean up: %v, left %v", err, left)
		}
	})
	return h, stateDir
}

func create(t *testing.T, h *kind.Host, opts host.CreateOptions) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	begin := time.Now()
	var answered []time.Duration
	opts.Answers = func([]byte) { answered = append(answered, time.Since(begin)) }
	if err := h.Create(ctx, opts); err != nil {
		t.Fatalf("Create: %v", err)
	}
	if len(answered) != 1 {
		t.Fatalf("Answers was called %d times", len(answered))
	}
	t.Logf("the API server answered after %s", answered[0].Round(100*time.Millisecond))
	t.Logf("Create took %s", time.Since(begin).Round(100*time.Millisecond))
	wantState(t, h, host.StateRunning)
	config, err := h.Kubeconfig(ctx)
	if err != nil {
		t.Fatal(err)
	}
	client, err := apiserver.New(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Ready(ctx); err != nil {
		t.Fatalf("Create returned before the API server was ready: %v", err)
	}
}

func wantState(t *testing.T, h *kind.Host, want host.State) {
	t.Helper()
	if got, err := h.State(t.Context()); err != nil || got != want {
		t.Fatalf("State: %s, %v; want %s", got, err, want)
	}
}

func node(t *testing.T, h *kind.Host) string {
	t.Helper()
	return h.Name() + "-control-plane"
}

// archive streams an image from the engine's own store.
type archive struct {
	engine *engine.Engine
	refs   []string
	opened int
}

func (a *archive) Names() []string { return a.refs }

func (a *archive) WriteArchive(ctx context.Context, w io.Writer, refs ...string) error {
	a.opened++
	return a.engine.Run(ctx, nil, w, append([]string{"save"}, refs...)...)
}

// testImage puts a tiny image into the engine's store.
func testImage(t *testing.T, e *engine.Engine, ref string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM scratch\nCOPY Dockerfile /\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Output(t.Context(), "build", "--tag", ref, dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = e.Output(context.Background(), "rmi", "--force", ref) })
}

func TestContract(t *testing.T) {
	h, _ := open(t, "contract")
	hosttest.Run(t, h, hosttest.Options{Create: options(t)})
}

func TestLifecycle(t *testing.T) {
	h, stateDir := open(t, "life")
	wantState(t, h, host.StateAbsent)
	const image = "localhost/hosttest/tiny:v1"
	testImage(t, h.Engine(), image)
	images := &archive{engine: h.Engine(), refs: []string{image}}
	opts := options(t)
	opts.Images = func(context.Context) (host.ImageArchive, error) { return images, nil }
	create(t, h, opts)
	has := func() {
		t.Helper()
		out, err := h.Engine().Output(t.Context(), "exec", node(t, h), "crictl", "images", "--output", "json")
		if err != nil || !strings.Contains(out, image) {
			t.Errorf("the image is not in the node: %v", err)
		}
	}
	has()
	gatewayWorks(t, h)

	create(t, h, opts)
	if images.opened != 1 {
		t.Errorf("images were loaded %d times", images.opened)
	}

	if _, err := h.Engine().Output(t.Context(), "stop", node(t, h)); err != nil {
		t.Fatal(err)
	}
	wantState(t, h, host.StateStopped)
	if state, err := h.Start(t.Context(), nil); err != nil || state != host.StateRunning {
		t.Fatalf("Start: %s, %v", state, err)
	}
	has()
	if _, err := h.Engine().Output(t.Context(), "stop", node(t, h)); err != nil {
		t.Fatal(err)
	}
	create(t, h, opts)
	has()

	if err := os.RemoveAll(stateDir); err != nil {
		t.Fatal(err)
	}
	wantState(t, h, host.StateRunning) // the mark is in the engine

	volumes := mounted(t, h)
	if left, err := h.Delete(t.Context()); err != nil || len(left) > 0 {
		t.Fatalf("Delete: %v, left %v", err, left)
	}
	wantState(t, h, host.StateAbsent)
	for _, v := range volumes {
		if _, err := h.Engine().Output(t.Context(), "volume", "inspect", v); err == nil {
			t.Errorf("volume %s is left", v)
		}
	}
	if left, err := h.Delete(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("Delete again: %v, left %v", err, left)
	}
}

func mounted(t *testing.T, h *kind.Host) (volumes []string) {
	t.Helper()
	containers, err := h.Engine().Containers(t.Context(), "io.x-k8s.kind.cluster="+h.Name())
	if err != nil || len(containers) != 1 {
		t.Fatalf("%v, %v", containers, err)
	}
	for _, m := range containers[0].Mounts {
		if m.Type == "volume" {
			volumes = append(volumes, m.Name)
		}
	}
	if len(volumes) == 0 {
		t.Error("the node has no volume")
	}
	return volumes
}

// gatewayWorks lets the node fetch from a server on the gateway's address.
func gatewayWorks(t *testing.T, h *kind.Host) {
	t.Helper()
	gateway, err := h.Gateway(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(gateway.Listen.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello from outside\n")
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	out, err := h.Engine().Output(t.Context(), "exec", node(t, h), "bash", "-c",
		"exec 3<>/dev/tcp/"+gateway.Host+"/"+port+"; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3")
	if err != nil || !strings.Contains(out, "hello from outside") {
		t.Errorf("the node does not reach %+v: %q, %v", gateway, out, err)
	}
}

func TestInterruptedCreateReturnsPromptlyAndIsRebuilt(t *testing.T) {
	h, _ := open(t, "cancel")
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Create(ctx, options(t)) }()
	awaitNode(t, h)
	begin := time.Now()
	cancel(interrupted)
	if err := <-done; !errors.Is(err, interrupted) || time.Since(begin) > 2*time.Second {
		t.Errorf("Create ended with %v after %s", err, time.Since(begin))
	}
	create(t, h, options(t))
}

func TestKilledCreateIsRebuilt(t *testing.T) {
	h, stateDir := open(t, "kill")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), childVariable+"="+h.Name(), "FLEETCTL_E2E_STATE="+stateDir)
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	awaitNode(t, h)
	time.Sleep(2 * time.Second) // into kubeadm's work
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	wantState(t, h, host.StateBroken)

	// A reboot on top of it: from outside it looks whole.
	if _, err := h.Engine().Output(t.Context(), "stop", "--time=1", node(t, h)); err != nil {
		t.Fatal(err)
	}
	wantState(t, h, host.StateStopped)
	if state, err := h.Start(t.Context(), nil); err != nil || state != host.StateBroken {
		t.Fatalf("Start of a half-made cluster: %s, %v", state, err)
	}
	create(t, h, options(t))
}

// awaitNode returns when the node's container runs.
func awaitNode(t *testing.T, h *kind.Host) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		list, err := h.Engine().Containers(t.Context(), "io.x-k8s.kind.cluster="+h.Name())
		if err == nil && len(list) == 1 && list[0].Running {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("no node appeared")
}

func TestSomebodyElsesClusterIsLeftAlone(t *testing.T) {
	h, err := kind.New(t.Context(), prefix+"foreign", kind.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	const image = "localhost/hosttest/tiny:v2"
	testImage(t, h.Engine(), image)
	id, err := h.Engine().Output(t.Context(), "create", "--label", "io.x-k8s.kind.cluster="+h.Name(), "--name", node(t, h), image, "none")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = h.Engine().Output(context.Background(), "rm", "--force", id) })
	wantState(t, h, host.StateForeign)
	if err := h.Create(t.Context(), options(t)); err == nil {
		t.Error("Create took it over")
	}
	if _, err := h.Delete(t.Context()); err == nil {
		t.Error("Delete did not refuse")
	}
	names, err := h.Containers(t.Context(), h.Name())
	if err != nil || len(names) != 1 {
		t.Fatalf("Containers: %v, %v", names, err)
	}
	if err := h.RemoveContainers(t.Context(), h.Name()); err != nil {
		t.Fatal(err)
	}
	wantState(t, h, host.StateAbsent)
}
