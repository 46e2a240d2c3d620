//go:build integration

package embedded_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/embedded"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/controlplane"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
	"github.com/fleetctl/fleetctl/pkg/host/hosttest"
	"github.com/fleetctl/fleetctl/pkg/testprograms"
)

const patience = time.Minute

func programs(t *testing.T) *controlplane.Programs {
	t.Helper()
	return programsIn(testprograms.ControlPlane(t))
}

func programsIn(dir string) *controlplane.Programs {
	path := func(name string) string { return filepath.Join(dir, name) }
	return &controlplane.Programs{Etcd: path("etcd"), APIServer: path("kube-apiserver"), ControllerManager: path("kube-controller-manager")}
}

func client(t *testing.T, h *embedded.Host) *kubernetes.Clientset {
	t.Helper()
	raw, err := h.Kubeconfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// supervisor is the identity of the process that holds a host, and those of its children.
func supervisor(t *testing.T, dir string) (process.Identity, []process.Identity) {
	t.Helper()
	var id process.Identity
	raw, err := os.ReadFile(filepath.Join(dir, "supervisor.json"))
	if err == nil {
		err = json.Unmarshal(raw, &id)
	}
	if err != nil {
		t.Fatal(err)
	}
	var children []process.Identity
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", id.PID))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		raw, err := os.ReadFile(task)
		if err != nil {
			t.Fatal(err)
		}
		for field := range strings.FieldsSeq(string(raw)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			if child, err := process.Find(pid); err == nil {
				children = append(children, child)
			}
		}
	}
	return id, children
}

// wantNone is for what has to be gone by now: whoever ended it said so.
func wantNone(t *testing.T, ids ...process.Identity) {
	t.Helper()
	for _, id := range ids {
		if id.Alive() {
			t.Errorf("process %d runs still", id.PID)
		}
	}
}

// wantGone waits until none of the processes is alive.
func wantGone(t *testing.T, ids ...process.Identity) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for _, id := range ids {
		for id.Alive() { // a process that is no child of ours cannot be waited for
			if time.Now().After(deadline) {
				t.Fatalf("process %d is left over", id.PID)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func wantNamespace(t *testing.T, h *embedded.Host, name string) {
	t.Helper()
	if _, err := client(t, h).CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func makeNamespace(t *testing.T, h *embedded.Host, name string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client(t, h).CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, h *embedded.Host) {
	t.Helper()
	began := time.Now()
	answered := false
	if err := h.Create(t.Context(), host.CreateOptions{Answers: func([]byte) { answered = true }}); err != nil {
		t.Fatal(err)
	}
	if !answered {
		t.Error("nobody was told that it answers")
	}
	t.Logf("made or found after %s", time.Since(began).Round(time.Millisecond))
	wantState(t, h, host.StateRunning)
}

func TestContract(t *testing.T) {
	h := newHost(t, embedded.Options{StateDir: filepath.Join(t.TempDir(), "host"), Programs: programs(t)})
	hosttest.Run(t, h, hosttest.Options{Patience: patience})
}

// TestLife is that of a persistent host: made, found, killed, started, stopped, started, deleted.
func TestLife(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "host")
	o := embedded.Options{StateDir: dir, Programs: programs(t)}
	h := newHost(t, o)
	create(t, h)
	makeNamespace(t, h, "kept")
	holder, children := supervisor(t, dir)
	if len(children) < 3 {
		t.Fatalf("the supervisor has %d children", len(children))
	}
	if session := sessionOf(t, holder.PID); session != holder.PID {
		t.Errorf("it belongs to session %d: the terminal's end would be its own", session)
	}

	create(t, newHost(t, o)) // another command finds it
	if again, _ := supervisor(t, dir); again != holder {
		t.Error("a second Create started it anew")
	}

	if err := holder.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wantGone(t, append(children, holder)...)
	// The last of its threads may hold its lock for an instant longer: whoever comes then has to manage as well.
	create(t, h)
	if again, _ := supervisor(t, dir); again == holder {
		t.Error("it was not started again")
	}
	wantNamespace(t, h, "kept")

	holder, children = supervisor(t, dir)
	if err := h.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantNone(t, append(children, holder)...)
	wantState(t, h, host.StateStopped)
	create(t, h)
	wantNamespace(t, h, "kept")

	names, err := h.Logs()
	if err != nil || strings.Join(names, " ") != "etcd kube-apiserver kube-controller-manager supervisor" {
		t.Errorf("logs of %v, %v", names, err)
	}
	holder, children = supervisor(t, dir)
	if left, err := h.Delete(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("Delete: %v, %v", left, err)
	}
	wantNone(t, append(children, holder)...)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
	wantState(t, h, host.StateAbsent)
}

func sessionOf(t *testing.T, pid int) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	session, err := strconv.Atoi(fields[3])
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// makeEphemeral is a command that makes an ephemeral host of the programs in a folder, says so, and waits to be killed.
func makeEphemeral(dir, programs string) {
	exe, err := os.Executable()
	if err == nil {
		var h *embedded.Host
		h, err = embedded.New("test", embedded.Options{
			StateDir: dir, Programs: programsIn(programs), Ephemeral: true, Executable: exe, Args: []string{supervisorArg},
		})
		if err == nil {
			err = h.Create(context.Background(), host.CreateOptions{})
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	runtime.GC() // nobody refers to the host any more, and it lives on
	fmt.Println("ready")
	time.Sleep(time.Hour)
}

func TestEphemeralEndsWithItsCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "host")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(exe, commandArg, dir, testprograms.ControlPlane(t))
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the command says %q, %v", line, err)
	}
	h := newHost(t, embedded.Options{StateDir: dir, Programs: programs(t)})
	wantState(t, h, host.StateRunning)
	holder, children := supervisor(t, dir)
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	wantGone(t, append(children, holder)...)
	create(t, h) // rebuilt from nothing, as what it is now asked to be
}

func TestReasonOfAStartThatFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "host")
	p := programs(t)
	p.APIServer = "/bin/false"
	h := newHost(t, embedded.Options{StateDir: dir, Programs: p})
	err := h.Create(t.Context(), host.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "kube-apiserver ended with exit code 1") {
		t.Errorf("got %v", err)
	}
	holder, children := supervisor(t, dir)
	wantGone(t, append(children, holder)...)
	wantState(t, h, host.StateBroken)

	// A supervisor that cannot even begin.
	h, err = embedded.New("test", embedded.Options{
		StateDir: filepath.Join(t.TempDir(), "host"), Programs: p, Executable: "/bin/sh", Args: []string{"-c", "echo no luck today >&2; exit 1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Create(t.Context(), host.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "no luck today") {
		t.Errorf("got %v", err)
	}
}

func TestInterruptedCreateLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "host")
	p := programs(t)
	p.APIServer = filepath.Join(t.TempDir(), "sleeps")
	if err := os.WriteFile(p.APIServer, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	h := newHost(t, embedded.Options{StateDir: dir, Programs: p})
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- h.Create(ctx, host.CreateOptions{}) }()
	var holder process.Identity
	var children []process.Identity
	for deadline := time.Now().Add(patience); len(children) < 2; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not start")
		}
		if _, err := os.Stat(filepath.Join(dir, "supervisor.json")); err == nil {
			holder, children = supervisor(t, dir)
		}
	}
	cancel()
	if err := <-result; err == nil {
		t.Error("no error")
	}
	wantGone(t, append(children, holder)...)
	wantState(t, h, host.StateBroken)
}
