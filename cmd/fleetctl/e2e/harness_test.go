//go:build e2e

// Package e2e runs the real fleetctl against real parts: a container engine, kind, Cluster API, Flux and Git. What it needs is built
// or installed by `make e2e`; what is missing is an error, never a skipped test.
package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// The environment that `make e2e` sets.
const (
	envProgram   = "FLEETCTL_E2E_PROGRAM"    // the fleetctl to test
	envBundle    = "FLEETCTL_E2E_BUNDLE"     // an offline bundle
	envNodeImage = "FLEETCTL_E2E_NODE_IMAGE" // node image of workload clusters that become management clusters; for kind alone
)

// kubernetesVersion is the one of the node images in the bundle.
const kubernetesVersion = "v1.36.3"

// cache is where every fleetctl of these tests unpacks images. It is theirs alone, so that a process from there is theirs too.
var cache string

func TestMain(m *testing.M) {
	for _, name := range []string{envProgram, envBundle} {
		if os.Getenv(name) == "" {
			fmt.Fprintf(os.Stderr, "%s is not set: run these tests with `make e2e`\n", name)
			os.Exit(1)
		}
	}
	var err error
	if cache, err = os.MkdirTemp("", "fleetctl-e2e-cache-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(cache); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// fleet is one fleet repo with its management cluster, and a fleetctl with a state folder of its own.
type fleet struct {
	t     *testing.T
	on    hostCase
	name  string
	base  string // the folder that all others are in
	dir   string
	state string
	home  string
	temp  string
	token string
	// fluxToken is what Flux reads with, if it is given one of its own.
	fluxToken string
	// in, if not nil, is where its fleetctl runs, with all that it starts.
	in *elsewhere
	// heard, if not nil, is called with all that each finished fleetctl has said.
	heard func(said string)
}

// hears tells what a finished fleetctl has said.
func (f *fleet) hears(said string) {
	if f.heard != nil {
		f.heard(said)
	}
}

// newFleetOn returns a fleet whose management cluster is on that host, and cleans up after the test.
func newFleetOn(t *testing.T, on hostCase, name string) *fleet {
	t.Helper()
	f := makeFleet(t, on, name)
	f.t = t
	t.Cleanup(f.cleanup)
	return f
}

func makeFleet(tb testing.TB, on hostCase, name string) *fleet {
	tb.Helper()
	base := tb.TempDir()
	f := &fleet{
		on: on, name: name, base: base, dir: filepath.Join(base, name),
		state: filepath.Join(base, "state"), home: filepath.Join(base, "home"), temp: filepath.Join(base, "tmp"),
	}
	for _, dir := range []string{f.dir, f.home, f.temp} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	return f
}

// step runs a subtest in which the fleet's own checks fail that subtest, and tells whether it passed.
func (f *fleet) step(name string, run func(t *testing.T)) bool {
	outer := f.t
	defer func() { f.t = outer }()
	return outer.Run(name, func(t *testing.T) {
		f.t = t
		run(t)
	})
}

// cleanup removes what a failed test left, so that it does not disturb the next one.
func (f *fleet) cleanup() {
	if f.t.Failed() {
		out, _ := f.command("status", "--management", f.name).CombinedOutput()
		f.t.Logf("status at the end of the failed test:\n%s", out)
	}
	out, err := f.command("teardown", "--delete-clusters", "--yes", "--management", f.name, "--timeout", "3m").CombinedOutput()
	if err != nil {
		f.t.Logf("teardown in the clean-up: %v\n%s", err, out)
	}
	f.on.sweep(f)
}

// command is fleetctl with args in the fleet repo.
func (f *fleet) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Getenv(envProgram), args...)
	cmd.Dir = f.dir
	cmd.Env = append(f.on.environment(f),
		"FLEETCTL_STATE_DIR="+f.state, "FLEETCTL_CACHE_DIR="+cache, "KUBECONFIG="+filepath.Join(f.home, "kubeconfig"),
		"GIT_CONFIG_GLOBAL="+filepath.Join(f.home, "gitconfig"), "FLEETCTL_GIT_TOKEN="+f.token, "FLEETCTL_FLUX_TOKEN="+f.fluxToken,
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=user.name", "GIT_CONFIG_VALUE_0=e2e", "GIT_CONFIG_KEY_1=user.email",
		"GIT_CONFIG_VALUE_1=e2e@example.com")
	return cmd
}

// result is what a finished fleetctl left.
type result struct {
	stdout, stderr string
	code           int
	took           time.Duration
}

// run runs fleetctl, shows its progress as it comes, and returns what it did.
func (f *fleet) run(args ...string) result {
	f.t.Helper()
	f.t.Logf("$ fleetctl %s", strings.Join(args, " "))
	cmd := f.command(args...)
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	progress := &echo{t: f.t}
	cmd.Stderr = progress
	begin := time.Now()
	var err error
	if f.in == nil {
		err = cmd.Run()
	} else {
		err = f.in.run(cmd)
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		f.t.Fatalf("fleetctl %v: %v", args, err)
	}
	f.hears(stdout.String() + progress.String())
	return result{stdout: stdout.String(), stderr: progress.String(), code: cmd.ProcessState.ExitCode(), took: time.Since(begin)}
}

// ok runs fleetctl and requires it to succeed.
func (f *fleet) ok(args ...string) result {
	f.t.Helper()
	r := f.run(args...)
	if r.code != 0 {
		f.t.Fatalf("fleetctl %v: exit %d\n%s\n%s", args, r.code, r.stderr, r.stdout)
	}
	return r
}

// fails runs fleetctl and requires that exit code and those words on standard error.
func (f *fleet) fails(code int, words []string, args ...string) result {
	f.t.Helper()
	r := f.run(args...)
	if r.code != code {
		f.t.Fatalf("fleetctl %v: exit %d, want %d\n%s\n%s", args, r.code, code, r.stderr, r.stdout)
	}
	for _, w := range words {
		if !strings.Contains(r.stderr, w) {
			f.t.Errorf("fleetctl %v: standard error does not say %q:\n%s", args, w, r.stderr)
		}
	}
	return r
}

// echo shows lines in the test's log as they come, and keeps them.
type echo struct {
	t   *testing.T
	mu  sync.Mutex
	all bytes.Buffer
	// line, if not nil, is called with each whole line.
	line    func(string)
	pending []byte
}

func (e *echo) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all.Write(p)
	e.pending = append(e.pending, p...)
	for {
		i := bytes.IndexByte(e.pending, '\n')
		if i < 0 {
			return len(p), nil
		}
		line := string(e.pending[:i])
		e.pending = e.pending[i+1:]
		fmt.Fprintf(os.Stderr, "    %s\n", line)
		if e.line != nil {
			e.line(line)
		}
	}
}

func (e *echo) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all.String()
}

// initArgs are the arguments of init for a fleet on the offline bundle.
func initArgs(more ...string) []string {
	return append([]string{
		"init", "--provider", "docker", "--bundle", os.Getenv(envBundle), "--kubernetes-version", kubernetesVersion, "-o", "json",
	}, more...)
}

// initResult is what init prints with -o json.
type initResult struct {
	Cluster    string `json:"cluster"`
	Revision   string `json:"revision"`
	Kubeconfig string `json:"kubeconfig"`
	Changed    bool   `json:"changed"`
	DeployKey  string `json:"deployKey"`
	Steps      []struct {
		Step    string  `json:"step"`
		Outcome string  `json:"outcome"`
		Seconds float64 `json:"seconds"`
	} `json:"steps"`
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("not the JSON that was expected: %v\n%s", err, text)
	}
	return v
}

// git runs git in the fleet repo.
func (f *fleet) git(args ...string) string {
	f.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", f.dir, "-c", "user.name=e2e", "-c", "user.email=e2e@example.com"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes files and commits them.
func (f *fleet) commit(message string, files map[string]string) {
	f.t.Helper()
	for name, content := range files {
		path := filepath.Join(f.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			f.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			f.t.Fatal(err)
		}
		f.git("add", name)
	}
	f.git("commit", "-q", "-m", message)
}

// status is what `fleetctl status -o json` says, as far as the tests look at it.
type status struct {
	Ready             bool `json:"ready"`
	ManagementCluster struct {
		Host  string `json:"host"`
		State string `json:"state"`
	} `json:"managementCluster"`
	Clusters []struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		Available bool   `json:"available"`
		Ready     bool   `json:"ready"`
		Flux      struct {
			Ready bool `json:"ready"`
		} `json:"flux"`
		Machines []struct {
			Name         string `json:"name"`
			Node         string `json:"node"`
			Ready        bool   `json:"ready"`
			ControlPlane bool   `json:"controlPlane"`
		} `json:"machines"`
	} `json:"clusters"`
	Flux struct {
		Sources []struct {
			Revision string `json:"revision"`
		} `json:"sources"`
	} `json:"flux"`
	Problems []struct {
		Object string `json:"object"`
		Reason string `json:"reason"`
		Hint   string `json:"hint"`
	} `json:"problems"`
}

// status asks without showing progress: it is called in loops.
func (f *fleet) status(more ...string) (status, int) {
	f.t.Helper()
	cmd := f.command(append([]string{"status", "-o", "json"}, more...)...)
	out, err := cmd.Output()
	exit, exited := errors.AsType[*exec.ExitError](err)
	if err != nil && !exited {
		f.t.Fatal(err)
	}
	f.hears(string(out))
	if exited {
		f.hears(string(exit.Stderr))
	}
	if len(out) == 0 {
		return status{}, cmd.ProcessState.ExitCode()
	}
	return decode[status](f.t, string(out)), cmd.ProcessState.ExitCode()
}

// eventually repeats check until it returns "", and fails the test with the last answer after limit, which is meant for a machine that does
// nothing else; one that runs other tests beside gets slow times as much. It says now and then what it waits for. Between two checks it
// sleeps a multiple of what a check takes, because most of them run fleetctl: on a busy machine they would be a good part of the load.
func eventually(t *testing.T, what string, limit time.Duration, check func() string) {
	t.Helper()
	const slow, least, most = 3, 500 * time.Millisecond, 10 * time.Second // a check that takes long is on a machine that is busy enough
	begin, told := time.Now(), time.Now()
	for {
		asked := time.Now()
		answer := check()
		if answer == "" {
			fmt.Fprintf(os.Stderr, "    %s after %.1fs\n", what, time.Since(begin).Seconds())
			return
		}
		if time.Since(begin) > slow*limit {
			t.Fatalf("%s: not within %s: %s", what, slow*limit, answer)
		}
		if time.Since(told) > 15*time.Second {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "    waiting for: %s (%.0fs): %s\n", what, time.Since(begin).Seconds(), answer)
		}
		time.Sleep(min(max(least, 3*time.Since(asked)), most))
	}
}

// available waits until the named workload cluster is Available.
func (f *fleet) available(name string, limit time.Duration) {
	f.t.Helper()
	eventually(f.t, name+" is Available", limit, func() string {
		st, _ := f.status()
		for _, c := range st.Clusters {
			if c.Name == name && c.Available {
				return ""
			}
		}
		return fmt.Sprintf("%+v", st.Problems)
	})
}
