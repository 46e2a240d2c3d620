//go:build integration

package embedded_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetctl/fleetctl/pkg/host/embedded"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/privatenet"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// listening are the programs of a host that other users of this machine can connect to, and where, as the kernel tells everybody.
func listening(t *testing.T, dir string) map[string][]string {
	t.Helper()
	running, err := process.Running(filepath.Join(dir, "processes"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, r := range running {
		for _, at := range r.Listening() {
			found[r.Name] = append(found[r.Name], at.String())
		}
	}
	return found
}

// wantPrivate: of all programs of a host only its API server can be connected to by others of this machine, on the one port that clients
// know.
func wantPrivate(t *testing.T, h *embedded.Host, dir string) {
	t.Helper()
	raw, err := h.Kubeconfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"kube-apiserver": {strings.TrimPrefix(config.Host, "https://")}}
	if got := listening(t, dir); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("others of this machine reach %v, want %v", got, want)
	}
	n, err := h.Neighbours(t.Context())
	if err != nil || !n.Private || len(n.Open) > 0 || n.Reason != "" {
		t.Errorf("Neighbours: %+v, %v", n, err)
	}
}

// TestLoopbackOfItsOwn has a manager that others of this machine do not reach, while probes do; and when the process that keeps the network
// is killed, all comes back as it was, each program on the port that others know it by, although somebody on the machine has that one by
// now.
func TestLoopbackOfItsOwn(t *testing.T) {
	if err := privatenet.Check(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "host")
	h := newHost(t, embedded.Options{StateDir: dir, ImageDir: filepath.Join(t.TempDir(), "images"), Programs: programs(t)})
	if n, err := h.Neighbours(t.Context()); err != nil || !n.Private {
		t.Errorf("before it is made: %+v, %v", n, err)
	}
	createWithImage(t, h)
	deploy(t, h, "manager")
	wantManagers(t, h, dir, 1)
	wantPrivate(t, h, dir)
	manager := managerOf(t, dir, "manager")

	port, l := strangerOnPort(t, dir)
	defer l.Close()
	holder, children := supervisor(t, dir)
	killed := false
	for _, child := range children {
		if inAnotherNetwork(t, child.PID) {
			if err := child.Signal(9); err != nil {
				t.Fatal(err)
			}
			killed = true
		}
	}
	if !killed {
		t.Fatalf("none of the supervisor's children %v is in a network of its own", children)
	}
	wantGone(t, manager)
	eventually(t, "the manager runs again", func() string {
		if now := managerOf(t, dir, "manager"); now == (process.Identity{}) {
			return "no process"
		}
		return ""
	})
	wantManagers(t, h, dir, 1)
	wantPrivate(t, h, dir)
	if now, _ := supervisor(t, dir); now != holder {
		t.Error("the supervisor is another one")
	}
	if now := managersPort(t, dir); now != port {
		t.Errorf("the manager's port was %d, and is %d", port, now)
	}
}

// managersPort is the port of a host's only manager.
func managersPort(t *testing.T, dir string) (port int) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "runner", "ports.json"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(raw[strings.LastIndexByte(string(raw), ':')+1:]), "%d", &port); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return port
}

// strangerOnPort listens on that port on the machine.
func strangerOnPort(t *testing.T, dir string) (port int, l net.Listener) {
	t.Helper()
	port = managersPort(t, dir)
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatalf("the manager's port is taken on the machine: %v", err)
	}
	return port, l
}

func inAnotherNetwork(t *testing.T, pid int) bool {
	t.Helper()
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return false // it has ended
	}
	ours, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	return theirs != ours
}

// TestStrangerOnItsPort: who listens on the port of a manager before that one does is not asked by the host.
func TestStrangerOnItsPort(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "host")
	h := newHost(t, embedded.Options{StateDir: dir, ImageDir: filepath.Join(t.TempDir(), "images"), Programs: programs(t)})
	createWithImage(t, h)
	deploy(t, h, "manager")
	wantManagers(t, h, dir, 1)
	port, l := strangerOnPort(t, dir)
	defer l.Close()
	before := managerOf(t, dir, "manager")
	if err := before.Signal(9); err != nil {
		t.Fatal(err)
	}
	wantGone(t, before)
	wantManagers(t, h, dir, 1)
	wantPrivate(t, h, dir)
	if now := managersPort(t, dir); now != port {
		t.Errorf("the manager's port was %d, and is %d", port, now)
	}
}
