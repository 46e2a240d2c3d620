//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// TestRunnerLost: the management cluster goes with its machine and all that this knew. A snapshot, the fleet repo and the fleet's age key
// make it again, and the clusters live on with the same machines.
func TestRunnerLost(t *testing.T) {
	h := newSource(t)
	bundle, place := []string{"--bundle", os.Getenv(envBundle)}, filepath.Join(h.base, "snapshots")
	if !h.step("a management cluster makes clusters", h.declares) {
		return
	}
	before := h.machines(h.source)
	h.step("a snapshot", func(t *testing.T) {
		r := decode[struct {
			Clusters []string       `json:"clusters"`
			Counts   map[string]int `json:"counts"`
		}](t, h.ok("backup", "--to", place, "-o", "json").stdout)
		if !slices.Equal(r.Clusters, []string{"one/one", "two/two"}) || r.Counts["Machine"] != len(before) {
			t.Errorf("it says %+v", r)
		}
	})
	h.step("a drill says that it would do, beside the host that is still there", func(t *testing.T) {
		r := decode[struct {
			Works    bool           `json:"works"`
			Restored map[string]int `json:"restored"`
			Findings []struct{ Severity, Summary string }
		}](t, h.ok(append([]string{"drill", "--from", place, "-o", "json"}, bundle...)...).stdout)
		if !r.Works || r.Restored["Machine"] != len(before) {
			t.Errorf("it says %+v", r)
		}
		h.sameMachines(t, before, h.source)
		if left, err := filepath.Glob(filepath.Join(h.state, "drills", "clusters", "*")); err != nil || len(left) > 0 {
			t.Errorf("it has left %v, %v", left, err)
		}
	})
	restore := append([]string{"restore", "--from", place}, bundle...)
	if !h.step("all that the machine was is gone", func(t *testing.T) {
		kill(t, h.on.processes(h.fleet))
		h.forgets()
		h.fails(1, []string{"age key"}, restore...)
		restore = append(restore, "--age-key-file", h.ageKey(h.lost()))
		h.fails(1, []string{"--source-is-gone"}, restore...)
	}) {
		return
	}
	if !h.step("restored, by a run that goes on where another was killed", func(t *testing.T) {
		h.killedInRestore(append(slices.Clone(restore), "--source-is-gone"))
		h.fails(1, []string{"is being restored from the snapshot", "fleetctl restore"}, append([]string{"init"}, bundle...)...)
		h.ok(append(slices.Clone(restore), "--source-is-gone")...)
		h.source = h.client(h.kubeconfigFile())
		h.ready(5 * time.Minute)
		h.sameMachines(t, before, h.source)
	}) {
		return
	}
	h.step("a commit still scales one", func(*testing.T) { h.scaled(h.source, "two", 2) })
	h.step("again there is nothing to do, and init finds its cluster", func(t *testing.T) {
		h.ok(restore...)
		h.ok(append([]string{"init"}, bundle...)...)
		h.ok("backup", "--to", place)
	})
	h.step("one is detached, and nothing makes it again", func(t *testing.T) {
		planned := h.ok("cluster", "detach", "two", "--dry-run").stdout
		if !strings.Contains(planned, "two/two") || len(h.machines(h.source)) != 5 {
			t.Errorf("it says %s", planned)
		}
		h.ok("cluster", "detach", "two", "--yes")
		h.scaled(h.source, "one", 2) // Flux has applied a later commit
		for _, m := range h.machines(h.source) {
			if !strings.HasPrefix(m, "one/") {
				t.Errorf("there is %s", m)
			}
		}
		h.fails(2, []string{"no workload cluster two"}, "cluster", "detach", "two", "--yes")
		h.ok("cluster", "remove", "two", "--push", "--wait", "--timeout", "3m")
		h.ok("cluster", "remove", "two", "--push", "--wait", "--yes", "--timeout", "3m")
		h.ready(time.Minute)
	})
	h.step("another machine learns the way", func(t *testing.T) {
		file := h.kubeconfigFile()
		first := h.state
		h.state = filepath.Join(h.base, "another-machine")
		defer func() { h.state = first }()
		h.fails(3, nil, "status")
		h.ok("connect", "--kubeconfig", file)
		h.ready(time.Minute)
		h.ok(append([]string{"init"}, bundle...)...)
		h.ok("backup", "--to", place) // the key came along
		h.ok("connect", "--forget")
		h.fails(3, nil, "status")
	})
	h.step("which this one need not", func(t *testing.T) {
		h.fails(1, []string{"is on this machine"}, "connect", "--kubeconfig", h.kubeconfigFile())
		h.ready(time.Minute)
	})
}

// TestRunnerLostInBootstrap: a pipeline's runner dies while bootstrap makes the clusters. A new one refuses to begin anew, and is told that
// the first is gone: it goes on from the snapshot, and makes no machine twice.
func TestRunnerLostInBootstrap(t *testing.T) {
	h := newSource(t)
	place := filepath.Join(h.base, "snapshots")
	run := []string{"bootstrap", "--bundle", os.Getenv(envBundle), "-o", "json"}
	if !h.step("a fleet repo with clusters, and no management cluster", func(*testing.T) {
		h.servedBy(h.server, "docker", fmt.Sprintf("  snapshots: {to: %q}\n", place))
		h.ok("init", "--scaffold")
		h.addsClusters("--commit")
	}) {
		return
	}
	var before []string
	if !h.step("the runner dies", func(t *testing.T) {
		before = h.diesInBootstrap(t, place, run)
		h.fails(1, []string{"age key"}, run...)
	}) {
		return
	}
	run = append(run, "--age-key-file", h.ageKey(h.lost()))
	h.step("a new one asks first", func(*testing.T) {
		h.fails(1, []string{"--source-is-gone"}, run...)
		h.fails(1, []string{"there are snapshots of it", "fleetctl restore"}, "init", "--bundle", os.Getenv(envBundle))
	})
	h.step("and goes on from the snapshot", func(t *testing.T) {
		h.ok(append(slices.Clone(run), "--source-is-gone")...)
		h.source = h.client(h.kubeconfigFile())
		h.ready(5 * time.Minute)
		now := h.machines(h.source)
		if len(now) != 4 {
			t.Errorf("machines: %v", now)
		}
		for _, m := range before {
			name, _, _ := strings.Cut(m, " ")
			if !slices.ContainsFunc(now, func(n string) bool { return strings.HasPrefix(n, name+" ") }) {
				t.Errorf("%s was made before, and is not there: %v", name, now)
			}
		}
	})
}

// killedInRestore kills a restore when it has stopped the providers and nobody has taken over: all the time that the objects are copied and
// compared.
func (h *handedOver) killedInRestore(args []string) {
	h.t.Helper()
	r := h.begin(args...)
	eventually(h.t, "the restore begins", 5*time.Minute, func() string {
		r.alive()
		if !strings.Contains(r.progress.String(), "restore the snapshot") {
			return "it has not"
		}
		return ""
	})
	c := h.client(filepath.Join(h.state, "clusters", h.name, "kubeconfig"))
	var at handover.Phase
	r.killedWhen(func() bool {
		journal, err := handover.ReadJournal(h.t.Context(), c)
		if err != nil || journal == nil {
			return false
		}
		if at = journal.Phase; at.Committed() {
			h.t.Fatalf("it was not seen between the halt and the commit\n%s", r.progress)
		}
		return h.halted(c)
	})
	h.t.Logf("killed in the phase %s", at)
}

// halted tells whether the core provider is told to run no pod.
func (h *handedOver) halted(c *kube.Client) bool {
	h.t.Helper()
	core := object("apps/v1", "Deployment")
	if err := c.Get(h.t.Context(), kube.Key{Namespace: "capi-system", Name: "capi-controller-manager"}, core); err != nil {
		h.t.Fatal(err)
	}
	replicas, is, err := unstructured.NestedInt64(core.Object, "spec", "replicas")
	return err == nil && is && replicas == 0
}

// diesInBootstrap runs bootstrap until a snapshot has machines in it, ends all that the machine runs and takes its state away. It returns
// those machines.
func (h *handedOver) diesInBootstrap(t *testing.T, place string, run []string) (machines []string) {
	r := h.begin(run...)
	eventually(t, "a snapshot has machines in it", 5*time.Minute, func() string {
		r.alive()
		files, err := filepath.Glob(filepath.Join(place, h.name, "*"))
		if err != nil || len(files) == 0 {
			return fmt.Sprintf("%d snapshots, %v", len(files), err)
		}
		// What the snapshot of that moment holds is at least what was there before it was taken.
		if content, err := os.ReadFile(filepath.Join(h.state, "clusters", h.name, "kubeconfig")); err == nil {
			if client, err := kube.New(content, kube.Options{}); err == nil {
				machines = h.machines(client)
			}
		}
		taken := len(files)
		if len(machines) < 2 {
			return "no machines yet"
		}
		eventually(t, "one more is kept", 2*time.Minute, func() string {
			files, err := filepath.Glob(filepath.Join(place, h.name, "*"))
			if err != nil || len(files) > taken {
				return ""
			}
			return "not yet"
		})
		return ""
	})
	r.kill()
	kill(t, h.on.processes(h.fleet))
	h.forgets()
	return machines
}

// forgets takes away all that the machine knows of the fleet. Only who has kept the fleet's age key elsewhere has it still, as from lost.
func (f *fleet) forgets() {
	f.t.Helper()
	if err := os.Rename(f.state, f.lost()); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) lost() string { return f.state + "-lost" }

// ageKey is the file with the fleet's age key in a state folder.
func (f *fleet) ageKey(state string) string {
	f.t.Helper()
	keys, err := filepath.Glob(filepath.Join(state, "keys", "fleets", "*.agekey"))
	if err != nil || len(keys) != 1 {
		f.t.Fatalf("keys: %v, %v", keys, err)
	}
	return keys[0]
}

// kubeconfigFile writes the management cluster's kubeconfig to a file.
func (h *handedOver) kubeconfigFile() string {
	h.t.Helper()
	file := filepath.Join(h.base, "now.kubeconfig")
	if err := os.WriteFile(file, []byte(h.ok("kubeconfig").stdout), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return file
}
