//go:build unix

package gitserve_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest" //nolint:depguard // runs git for tests
	"github.com/fleetctl/fleetctl/pkg/gitserve"
)

// childArg makes the test binary be the program that Ensure starts.
const childArg = "git-serve-child"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == childArg {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err := gitserve.Run(ctx, os.Args[2], os.Stdout, os.Stderr, nil)
		stop()
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func spec(t *testing.T) gitserve.Spec {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "state")
	t.Cleanup(func() {
		if err := gitserve.Stop(context.Background(), dir); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	return gitserve.Spec{
		StateDir: dir, RepoDir: fleet(t), Listen: netip.MustParseAddr("127.0.0.1"), Executable: exe, Args: []string{childArg, dir},
	}
}

func ensure(t *testing.T, s gitserve.Spec, wantStart bool) gitserve.Endpoint {
	t.Helper()
	e, started, err := gitserve.Ensure(t.Context(), s)
	if err != nil {
		t.Fatalf("Ensure: %v (%s)", err, diag.Hint(err))
	}
	if started != wantStart {
		t.Errorf("started %v, want %v", started, wantStart)
	}
	return *e
}

func status(t *testing.T, s gitserve.Spec) *gitserve.ServerStatus {
	t.Helper()
	st, err := gitserve.Status(t.Context(), s.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// served is the content of fleet.yaml as a client gets it.
func served(t *testing.T, e gitserve.Endpoint) string {
	t.Helper()
	url := strings.Replace(gitserve.URL("127.0.0.1", e.Port), "https://", fmt.Sprintf("https://%s:%s@", e.Username, e.Password), 1)
	into := filepath.Join(t.TempDir(), "clone")
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, []byte(e.CA), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_SSL_CAINFO", ca)
	gittest.Git(t, t.TempDir(), "clone", "--quiet", "--depth", "1", url, into)
	return fileAt(t, into)
}

func TestEnsure(t *testing.T) {
	s := spec(t)
	if st := status(t, s); st.Running || st.Healthy {
		t.Errorf("status before: %+v", st)
	}
	first := ensure(t, s, true)
	if served(t, first) != "3" || first.Password == "" {
		t.Error("the wrong content, or no password")
	}
	if again := ensure(t, s, false); again != first {
		t.Errorf("again %+v, want %+v", again, first)
	}
	st := status(t, s)
	if !st.Running || !st.Healthy || st.PID <= 0 || st.Port != first.Port || st.RepoDir != s.RepoDir {
		t.Errorf("status %+v", st)
	}
	for _, name := range []string{"git-serve.json", "git-serve.log", "git-serve.pid"} {
		info, err := os.Stat(filepath.Join(s.StateDir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	log, err := os.ReadFile(filepath.Join(s.StateDir, "git-serve.log"))
	if err != nil || strings.Contains(string(log), first.Password) {
		t.Errorf("the log has the password in it, or %v", err)
	}

	// A commit in the folder is all it takes.
	commit(t, s.RepoDir, "4")
	if served(t, first) != "4" {
		t.Error("the commit does not show")
	}

	// Killed: started again, on the same port, with the same password.
	if err := syscall.Kill(st.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end of the server", func() bool { return !status(t, s).Running })
	if again := ensure(t, s, true); again != first || served(t, again) != "4" {
		t.Errorf("after a kill %+v, want %+v", again, first)
	}

	// Another folder: replaced.
	s.RepoDir = fleet(t)
	commit(t, s.RepoDir, "other")
	if again := ensure(t, s, true); again != first || served(t, again) != "other" {
		t.Errorf("with another folder %+v, want %+v", again, first)
	}
	ensure(t, s, false)
	// Another address: replaced.
	s.Listen = netip.MustParseAddr("0.0.0.0")
	if again := ensure(t, s, true); again != first {
		t.Errorf("with another address %+v, want %+v", again, first)
	}
	ensure(t, s, false)

	for range 2 {
		if err := gitserve.Stop(t.Context(), s.StateDir); err != nil {
			t.Errorf("Stop: %v", err)
		}
	}
	if st := status(t, s); st.Running || st.Healthy || st.PID != 0 {
		t.Errorf("status after Stop: %+v", st)
	}
	if again := ensure(t, s, true); again != first {
		t.Errorf("after Stop %+v, want %+v", again, first)
	}
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// A process id that the system has given to somebody else must not be signalled.
func TestForeignPID(t *testing.T) {
	s := spec(t)
	ensure(t, s, true)
	if err := gitserve.Stop(t.Context(), s.StateDir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.StateDir, "git-serve.pid"), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := gitserve.Stop(t.Context(), s.StateDir); err != nil { // it would end this very test
		t.Fatal(err)
	}
	ensure(t, s, true)
}

// A server that hangs does not answer, and is replaced; one that ignores the request to end is killed.
func TestHangingServer(t *testing.T) {
	s := spec(t)
	first := ensure(t, s, true)
	pid := status(t, s).PID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the server to hang", func() bool { return !status(t, s).Healthy })
	if again := ensure(t, s, true); again != first || status(t, s).PID == pid {
		t.Errorf("%+v, want %+v by another process", again, first)
	}
}

func TestPortTaken(t *testing.T) {
	s := spec(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	s.Port = int(netip.MustParseAddrPort(taken.Addr().String()).Port())
	var conflict *gitserve.PortTakenError
	if _, _, err := gitserve.Ensure(t.Context(), s); !errors.As(err, &conflict) || conflict.Address != taken.Addr().String() ||
		diag.Hint(err) == "" {
		t.Errorf("error %v", err)
	}
	if status(t, s).Running {
		t.Error("something runs")
	}
}

func TestEnsureErrors(t *testing.T) {
	s := spec(t)
	s.RepoDir = t.TempDir()
	if _, _, err := gitserve.Ensure(t.Context(), s); !errors.Is(err, gitserve.ErrNoRepository) {
		t.Errorf("no repository: %v", err)
	}
	s = spec(t)
	s.Args = []string{"-test.run", "^$"} // a program that ends at once
	if _, _, err := gitserve.Ensure(t.Context(), s); err == nil || diag.Hint(err) == "" {
		t.Errorf("a program that ends: %v", err)
	}
	s.Executable = filepath.Join(t.TempDir(), "missing")
	if _, _, err := gitserve.Ensure(t.Context(), s); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no program: %v", err)
	}
	if err := gitserve.Stop(t.Context(), filepath.Join(t.TempDir(), "never")); err != nil {
		t.Errorf("Stop where nothing ever was: %v", err)
	}
}

func TestEnsureConcurrently(t *testing.T) {
	s := spec(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	starts, endpoints := 0, map[gitserve.Endpoint]bool{}
	for range 4 {
		wg.Go(func() {
			e, started, err := gitserve.Ensure(t.Context(), s)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			endpoints[*e] = true
			if started {
				starts++
			}
		})
	}
	wg.Wait()
	if starts != 1 || len(endpoints) != 1 {
		t.Errorf("%d starts, %d endpoints; want one", starts, len(endpoints))
	}
}
