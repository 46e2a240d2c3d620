package embedded_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/embedded"
)

// The test program is also the supervisor, a manager on it, and a command that makes an ephemeral host and is killed.
const (
	supervisorArg = "host-run"
	commandArg    = "make-ephemeral-host"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == supervisorArg {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err := embedded.Run(ctx, os.Args[2], embedded.Streams{In: os.Stdin, Hello: os.Stdout, Log: os.Stderr})
		stop()
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if filepath.Base(os.Args[0]) == "manager" {
		manage()
	}
	if len(os.Args) == 4 && os.Args[1] == commandArg {
		makeEphemeral(os.Args[2], os.Args[3])
	}
	os.Exit(m.Run())
}

// manage is a manager that is ready at once, with a child of its own where that is asked for. It leaves a file in /data.
func manage() {
	health := flag.String("health-addr", ":9440", "The address the health endpoint binds to.")
	data := flag.String("data-dir", "/data", "Where it keeps what it makes.")
	child := flag.Bool("child", false, "Start a child that outlives it.")
	flag.Parse()
	err := os.WriteFile(filepath.Join(*data, "made"), []byte("by the manager"), 0o666)
	if err == nil && *child {
		err = exec.Command("/bin/sleep", "1000").Start()
	}
	if err == nil {
		err = http.ListenAndServe(*health, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	}
	fmt.Println(err)
	os.Exit(1)
}

func newHost(t *testing.T, o embedded.Options) *embedded.Host {
	t.Helper()
	if o.StateDir == "" {
		o.StateDir = filepath.Join(t.TempDir(), "host")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o.Executable, o.Args = exe, []string{supervisorArg}
	h, err := embedded.New("test", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := os.Stat(filepath.Join(o.StateDir, "host.json")); err != nil {
			return
		}
		if left, err := h.Delete(context.Background()); err != nil || len(left) > 0 {
			t.Errorf("Delete: %v, %v", left, err)
		}
	})
	return h
}

func wantState(t *testing.T, h *embedded.Host, want host.State) {
	t.Helper()
	if got, err := h.State(t.Context()); err != nil || got != want {
		t.Errorf("state %q, %v; want %q", got, err, want)
	}
}

func TestStatesOfAFolder(t *testing.T) {
	dir := t.TempDir()
	h := newHost(t, embedded.Options{StateDir: dir})
	wantState(t, h, host.StateAbsent)
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("host.json.123", "") // of a write that was killed
	wantState(t, h, host.StateBroken)
	write("host.json", `{"name": "test"}`)
	wantState(t, h, host.StateBroken)
	write("complete", "")
	wantState(t, h, host.StateStopped)
	write("host.json", `{"name": "test", "ephemeral": true}`)
	wantState(t, h, host.StateBroken) // its data are not to be trusted
	write("host.json", `{"name": "other"}`)
	wantState(t, h, host.StateForeign)
	if _, err := h.Delete(t.Context()); err == nil {
		t.Error("Delete removes what is not ours")
	}
	if err := os.Remove(filepath.Join(dir, "host.json")); err != nil {
		t.Fatal(err)
	}
	write("holiday.jpg", "")
	wantState(t, h, host.StateForeign)
	if err := h.Create(t.Context(), host.CreateOptions{}); err == nil {
		t.Error("Create works in a folder that is not ours")
	}
}

func TestDeleteOfWhatWasHalfMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "host")
	h := newHost(t, embedded.Options{StateDir: dir})
	unwritable := filepath.Join(dir, "runner", "volume")
	if err := os.MkdirAll(unwritable, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(unwritable, "file"), nil, 0o400); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(unwritable, 0o500); err != nil {
		t.Fatal(err)
	}
	wantState(t, h, host.StateBroken)
	if left, err := h.Delete(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	wantState(t, h, host.StateAbsent)
	if _, err := h.Delete(t.Context()); err != nil {
		t.Errorf("a second time: %v", err)
	}
}
