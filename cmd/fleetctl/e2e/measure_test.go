//go:build e2e

package e2e

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// envPrograms is the folder with programs that are not fleetctl: kubectl, the peers' kind and clusterctl, Gitea.
const envPrograms = "FLEETCTL_E2E_PROGRAMS"

// programsDir is that folder.
func programsDir(tb testing.TB) string {
	tb.Helper()
	dir := os.Getenv(envPrograms)
	if dir == "" {
		tb.Fatalf("%s is not set: run this with make", envPrograms)
	}
	return dir
}

// footprint is what a management cluster and the commands that make it take of this machine.
type footprint struct {
	seconds       float64
	peak          int64 // bytes: the largest sum of what all its processes had resident
	calls, writes int   // requests to its API server
}

func (p footprint) String() string {
	return fmt.Sprintf("%8.1f s  %6d MiB peak  %6d API calls (%d writes)", p.seconds, p.peak>>20, p.calls, p.writes)
}

// watch samples the memory of our own children, of what belongs to the folder and of the node container, from now until stop is called.
// What two processes share counts twice.
func watch(b *testing.B, folder, container string) (stop func() int64) {
	b.Helper()
	const interval = 500 * time.Millisecond
	ctx, cancel := context.WithCancel(b.Context())
	var peak int64
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		id := ""
		for sample := 0; ; sample++ {
			if id == "" && container != "" && sample%4 == 0 { // a call of the engine's program is not free
				id = containerID(ctx, container)
			}
			var sum int64
			for _, p := range hostFamily(b, folder, id) {
				sum += p.rss
			}
			peak = max(peak, sum)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return func() int64 {
		cancel()
		wg.Wait()
		return peak
	}
}

// containerID is empty while there is no such container.
func containerID(ctx context.Context, name string) string {
	out, err := exec.CommandContext(ctx, engineName(), "container", "inspect", "--format", "{{.Id}}", name).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// hostFamily is our children, the processes that belong to the folder, the container with that id (its engine's monitor has the id among
// its arguments), and all that these have started.
func hostFamily(tb testing.TB, folder, container string) map[int]proc {
	tb.Helper()
	own := os.Getpid()
	table := processTable(tb)
	return family(table, func(_ int, p proc) bool {
		return p.parent == own || p.belongsTo(folder) || p.belongsTo(cache) ||
			container != "" && slices.Contains(strings.Fields(p.command), container)
	})
}

// apiCalls sums what the API server has counted since it started.
func apiCalls(b *testing.B, kubeconfig string) (calls, writes int) {
	b.Helper()
	out, err := exec.CommandContext(b.Context(), filepath.Join(programsDir(b), "kubectl"), "--kubeconfig", kubeconfig, "get",
		"--raw", "/metrics").Output()
	if err != nil {
		b.Fatalf("read the API server's metrics: %v", err)
	}
	for s := bufio.NewScanner(strings.NewReader(string(out))); s.Scan(); {
		line, ok := strings.CutPrefix(s.Text(), "apiserver_request_total{")
		if !ok {
			continue
		}
		labels, value, _ := strings.Cut(line, "} ")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			b.Fatalf("the API server's metrics: %q: %v", s.Text(), err)
		}
		calls += int(n)
		if !strings.Contains(labels, `verb="GET"`) && !strings.Contains(labels, `verb="LIST"`) && !strings.Contains(labels, `verb="WATCH"`) {
			writes += int(n)
		}
	}
	if calls == 0 {
		b.Fatal("the API server's metrics count no requests")
	}
	return calls, writes
}

// proportionalMemory is what the processes have resident, where a page that n of them share counts as an nth.
func proportionalMemory(tb testing.TB, processes map[int]proc) int64 {
	tb.Helper()
	var sum int64
	for pid := range processes {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			continue // it has ended meanwhile
		}
		for line := range strings.Lines(string(raw)) {
			if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "Pss:" {
				kib, err := strconv.ParseInt(fields[1], 10, 64)
				if err != nil {
					tb.Fatal(err)
				}
				sum += kib << 10
			}
		}
	}
	return sum
}

// consumers lists the processes that took most CPU time since an earlier look, with their memory now.
func consumers(before, after map[int]proc, over time.Duration, most int) (total time.Duration, list []string) {
	used := map[int]time.Duration{}
	for pid, p := range after {
		used[pid] = p.cpu - before[pid].cpu
		total += used[pid]
	}
	order := slices.SortedFunc(maps.Keys(used), func(a, b int) int { return cmp.Compare(used[b], used[a]) })
	for _, pid := range order[:min(most, len(order))] {
		p := after[pid]
		list = append(list, fmt.Sprintf("%-28s %5.1f %% of a core  %5d MiB", programName(p), share(used[pid], over), p.rss>>20))
	}
	return total, list
}

func share(used, over time.Duration) float64 { return 100 * used.Seconds() / over.Seconds() }

// programName tells managers apart whose programs are all called manager: by the folder that they work in.
func programName(p proc) string {
	if p.name != "manager" {
		return p.name
	}
	return filepath.Base(filepath.Dir(p.dir)) + "/" + filepath.Base(p.dir)
}
