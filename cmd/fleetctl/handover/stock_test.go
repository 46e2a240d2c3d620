//go:build e2e

package handover

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// stock is `clusterctl move`, namespace after namespace, as somebody would write it into a pipeline.
func stock(t testing.TB, namespaces ...string) program {
	t.Helper()
	clusterctl := filepath.Join(programs(t), "clusterctl")
	if _, err := os.Stat(clusterctl); err != nil {
		t.Fatal(err)
	}
	command := func(ctx context.Context, _, source, target, home string) *exec.Cmd {
		script := `set -e
for namespace in ` + strings.Join(namespaces, " ") + `; do
  ` + clusterctl + ` move --kubeconfig "$1" --to-kubeconfig "$2" --namespace "$namespace"
done`
		cmd := exec.CommandContext(ctx, "sh", "-c", script, "sh", source, target)
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "CLUSTERCTL_DISABLE_VERSIONCHECK=true")
		return cmd
	}
	return program{name: "clusterctl move", limit: 10 * time.Minute, command: command}
}

// TestStockMove moves without a fault: the bed itself finds nothing then.
func TestStockMove(t *testing.T) {
	w := newWorld(t, func(s *seeder) { s.stockFleet(t.Context(), t) })
	j := judge{world: w}
	o := w.execute(t.Context(), t, stock(t, "team-a", "team-b"), handOver, newMachine(t), &run{})
	if o.code != 0 {
		t.Fatalf("exit %d:\n%s", o.code, o.output)
	}
	t.Logf("%d writes and %d reads in %s", o.count(), o.reads.Load(), o.took)
	if faults := j.handedOver(t.Context(), t); len(faults) > 0 {
		t.Errorf("it was not interrupted, and yet:\n%s", strings.Join(sorted(faults), "\n"))
	}
}

// TestStockKills says how often stock clusterctl, killed at a write and started again with the same command, does not come to its end:
// not a promise of ours, but what ours is worth. `make test-handover-stock` runs it.
func TestStockKills(t *testing.T) {
	b := newBed(t, stock(t, "team-a", "team-b"), *worlds, func(ctx context.Context, t testing.TB, s *seeder) { s.stockFleet(ctx, t) }, false)
	ctx := t.Context()
	w := b.worlds[0]
	whole := w.execute(ctx, t, b.program, handOver, newMachine(t), &run{})
	b.hold(t, b.judge(w).handedOver(ctx, t), "without a fault", whole)
	cases := everyWrite(whole.count())
	b.random.Shuffle(len(cases), func(i, k int) { cases[i], cases[k] = cases[k], cases[i] })
	cases = cases[:min(len(cases), *kills)]
	var mu sync.Mutex
	count := map[string]int{}
	forEach(t, b, "kills of clusterctl move", cases, func(t *testing.T, w *world, k kill) {
		machine := w.restore(t.Context(), t, w.beginning)
		o := w.execute(t.Context(), t, b.program, handOver, machine, &run{judge: k.strike})
		if len(o.struck) == 0 {
			return
		}
		b.kills.Add(1)
		var again outcome
		for range 2 {
			again = w.execute(t.Context(), t, b.program, handOver, machine, &run{})
		}
		faults := b.judge(w).handedOver(t.Context(), t)
		mu.Lock()
		defer mu.Unlock()
		for kind := range kindsOf(faults) {
			count[kind]++
		}
		if len(faults) > 0 {
			count["not mended by running it again"]++
		}
		if len(faults) > 0 && again.code == 0 {
			count["and yet it said that all is done (exit 0)"]++
		}
	})
	for _, what := range slices.Sorted(maps.Keys(count)) {
		t.Logf("clusterctl move: of %d kills, %d: %s", b.kills.Load(), count[what], what)
	}
	if count["not mended by running it again"] == 0 {
		t.Error("no kill did any harm: then this bed finds nothing")
	}
}

// kindsOf are the words that faults begin with.
func kindsOf(faults []string) map[string]bool {
	kinds := map[string]bool{}
	for _, f := range faults {
		kind, _, _ := strings.Cut(f, ":")
		kinds[kind] = true
	}
	return kinds
}

// TestFleet holds testdata to the CRDs.
func TestFleet(t *testing.T) {
	w := newWorld(t, func(s *seeder) { s.fleet(t.Context(), t) })
	t.Logf("%d objects at the source, %d at the target", len(w.sourceBefore), len(w.targetBefore))
	j := judge{world: w, status: true}
	if faults := j.asBefore(t.Context(), t); len(faults) > 0 {
		t.Errorf("nothing was done, and yet:\n%s", strings.Join(sorted(faults), "\n"))
	}
	if faults := j.meanwhile(t.Context(), t); len(faults) > 0 {
		t.Errorf("nothing was done, and yet:\n%s", strings.Join(sorted(faults), "\n"))
	}
}
