//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hostCase is one kind of host, as the scenarios see it: what differs between hosts is here and nowhere else.
type hostCase struct {
	// name as fleet.yaml and status have it.
	name string
	// environment of fleetctl, in which this host is the one that init takes.
	environment func(f *fleet) []string
	// midway is how long after its begin the making of the host is well under way.
	midway time.Duration
	// killAt are the steps of init in which a kill meets something of this host's own; none is all steps.
	killAt []string
	// processes are those of the host on this machine, what serves the fleet repo included.
	processes func(f *fleet) map[int]string
	// powerOff does to the host what a reboot of this machine would; its processes are ended by who calls it.
	powerOff func(f *fleet)
	// leftBehind lists what the host could leave; what was there before it was made is in it too.
	leftBehind func(f *fleet) []string
	// foreign puts something of somebody else's where the host would be.
	foreign func(f *fleet)
	// sweep removes what a failed test left.
	sweep func(f *fleet)
}

// hosts are all that the scenarios run on, one after the other: the in-memory provider's port is the same on each.
var hosts = []hostCase{onEmbedded, onKind}

// onKind needs a container engine.
var onKind = hostCase{
	name:        "kind",
	environment: func(*fleet) []string { return os.Environ() },
	midway:      4 * time.Second, // with containers made
	// In the other steps init talks to an API server, as it does on the embedded host.
	killAt:     []string{"create management cluster", "install providers"},
	processes:  processesBesideEngine,
	powerOff:   func(f *fleet) { engine(f.t, "stop", "--time=2", f.name+"-control-plane") },
	leftBehind: leftOnEngine,
	foreign: func(f *fleet) {
		engine(f.t, "create", "--label", "io.x-k8s.kind.cluster="+f.name, "--name", f.name+"-control-plane", nodeImage(f.t))
		f.t.Cleanup(func() { engine(f.t, "rm", "--force", f.name+"-control-plane") })
	},
	sweep: func(f *fleet) {
		// A management cluster that died deletes no cluster any more. Each of their nodes holds gigabytes.
		for _, prefix := range []string{f.name, west + "-", east + "-", north + "-"} {
			removeContainers(f.t, prefix)
		}
	},
}

// onEmbedded needs nothing: fleetctl finds no container engine, whether this machine has one or not.
var onEmbedded = hostCase{
	name:        "embedded",
	environment: withoutEngine,
	midway:      time.Second, // with etcd and the API server starting
	processes:   func(f *fleet) map[int]string { return processesOf(f.t, f.base, cache) },
	powerOff:    func(*fleet) {}, // it is nothing but processes
	leftBehind:  leftOnMachine,
	foreign: func(f *fleet) {
		dir := filepath.Join(f.state, "clusters", f.name, "embedded")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			f.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), []byte("mine"), 0o600); err != nil {
			f.t.Fatal(err)
		}
	},
	sweep: func(f *fleet) { kill(f.t, processesOf(f.t, f.base)) },
}

// onEmbeddedBesideEngine is the same on a machine with a container engine, for what makes clusters of containers from there.
var onEmbeddedBesideEngine = func() hostCase {
	on := onEmbedded
	on.environment = func(f *fleet) []string { return append(os.Environ(), "TMPDIR="+f.temp) }
	return on
}()

// withoutEngine is an environment in which no container engine can be found: of all programs there is only Git.
func withoutEngine(f *fleet) []string {
	programs := filepath.Join(f.home, "bin")
	if _, err := os.Stat(programs); err != nil {
		git, err := exec.LookPath("git")
		if err == nil {
			err = os.MkdirAll(programs, 0o755)
		}
		if err == nil {
			err = os.Symlink(git, filepath.Join(programs, "git"))
		}
		if err != nil {
			panic(err) // a test cannot go on, nor a benchmark
		}
	}
	env := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"PATH", "KIND_EXPERIMENTAL_PROVIDER", "DOCKER_HOST", "CONTAINER_HOST"}, name)
	})
	return append(env, "PATH="+programs, "TMPDIR="+f.temp)
}

// reboot does to the management cluster what a reboot of this machine would: all that ran is gone at once.
func (f *fleet) reboot() {
	f.t.Helper()
	running := f.on.processes(f)
	if len(running) == 0 {
		f.t.Fatal("nothing of the management cluster runs on this machine: there is nothing to reboot")
	}
	f.on.powerOff(f)
	kill(f.t, running)
	eventually(f.t, "all is off", time.Minute, func() string { return told(f.on.processes(f)) })
}

func kill(t *testing.T, running map[int]string) {
	t.Helper()
	for pid, what := range running {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) { // with its parent, an instant ago
			t.Errorf("kill %s: %v", what, err)
		}
	}
}

// leftOnEngine lists what a management cluster could leave on the engine and in the process table.
func leftOnEngine(f *fleet) []string {
	var out []string
	for _, name := range lines(engine(f.t, "ps", "-a", "--format", "{{.Names}}")) {
		out = append(out, "container "+name)
	}
	for _, name := range lines(engine(f.t, "volume", "ls", "-q")) {
		out = append(out, "volume "+name)
	}
	for _, name := range lines(engine(f.t, "network", "ls", "--format", "{{.Name}}")) {
		out = append(out, "network "+name)
	}
	out = append(out, lines(told(f.on.processes(f)))...)
	slices.Sort(out)
	return out
}

// leftOnMachine lists what an embedded host could leave in the process table, among temporary files and of its state.
func leftOnMachine(f *fleet) []string {
	out := lines(told(f.on.processes(f)))
	entries, err := os.ReadDir(f.temp)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, "temporary file "+e.Name())
	}
	found, err := filepath.Glob(filepath.Join(f.state, "clusters", "*", "embedded", "*"))
	if err != nil {
		f.t.Fatal(err)
	}
	for _, path := range found {
		out = append(out, "state "+path)
	}
	slices.Sort(out)
	return out
}

// told are processes, one in a line.
func told(running map[int]string) string {
	var b strings.Builder
	for pid, what := range running {
		fmt.Fprintf(&b, "process %d %s\n", pid, what)
	}
	return b.String()
}

// processesBesideEngine leaves out Podman's DNS server: whatever makes the first container of a network starts it, in its own working
// folder, and it runs as long as any container is there, somebody else's too.
func processesBesideEngine(f *fleet) map[int]string {
	out := processesOf(f.t, f.base)
	maps.DeleteFunc(out, func(_ int, command string) bool {
		program, _, _ := strings.Cut(command, " ")
		return filepath.Base(program) == "aardvark-dns"
	})
	return out
}

// processesOf maps the ids of the processes that belong to one of the folders, by their program, working folder or arguments, to their
// command lines.
func processesOf(tb testing.TB, folders ...string) map[int]string {
	tb.Helper()
	out := map[int]string{}
	for pid, p := range processTable(tb) {
		if slices.ContainsFunc(folders, p.belongsTo) {
			out[pid] = p.command
		}
	}
	return out
}
