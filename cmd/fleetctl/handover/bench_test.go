//go:build e2e

package handover

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// benchClusters is how many clusters change hands, of 20 objects each.
const benchClusters = 200

// verbOf finds the verb in the name of a metric.
var verbOf = regexp.MustCompile(`verb="([A-Z]+)"`)

// calls counts the requests that an API server has answered, as it says itself, by their verbs.
func (s *side) calls(ctx context.Context, t testing.TB) map[string]float64 {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.host+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	total := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "apiserver_request_total{") {
			continue
		}
		var n float64
		if _, err := fmt.Sscan(lines.Text()[strings.LastIndexByte(lines.Text(), ' ')+1:], &n); err != nil {
			t.Fatal(err)
		}
		if verb := verbOf.FindStringSubmatch(lines.Text()); verb != nil {
			total[verb[1]] += n
		}
	}
	return total
}

// since returns how many calls there were after those of before, with their sum.
func since(before, now map[string]float64) (calls map[string]float64, total float64) {
	calls = map[string]float64{}
	for verb, n := range now {
		if more := n - before[verb]; more > 0 {
			calls[verb] = more
			total += more
		}
	}
	return calls, total
}

// measured is one hand-over between two API servers, without proxies.
type measured struct {
	took, processor time.Duration
	// own is the part of processor that the program itself took, and not the API servers and etcd.
	own            time.Duration
	calls          float64
	source, target map[string]float64 // its calls by verb
	// phases has the lines of the hand-over's progress, each with its time.
	phases string
}

func measure(ctx context.Context, t testing.TB, w *world, p program) measured {
	t.Helper()
	dir := newMachine(t)
	files := map[string]string{}
	for name, s := range map[string]*side{"source": w.source, "target": w.target} {
		files[name] = filepath.Join(dir, name)
		if err := os.WriteFile(files[name], s.kubeconfig, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source, target := w.source.calls(ctx, t), w.target.calls(ctx, t)
	processor := processorTime(t)
	var output bytes.Buffer
	cmd := p.command(ctx, handOver, files["source"], files["target"], dir)
	cmd.Stdout, cmd.Stderr = &output, &output
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		content := output.String()
		t.Fatalf("%s: %v\n%s", p.name, err, content[max(0, len(content)-4000):])
	}
	m := measured{took: time.Since(begin), processor: processorTime(t) - processor}
	m.own = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	var there float64
	m.source, m.calls = since(source, w.source.calls(ctx, t))
	m.target, there = since(target, w.target.calls(ctx, t))
	m.calls += there
	m.phases = timeline(output.String(), begin)
	return m
}

// timeline returns when each step of a hand-over began, from the lines of its progress: seconds, phase, detail, and two counts.
func timeline(output string, begin time.Time) string {
	var result strings.Builder
	last := ""
	for line := range strings.Lines(output) {
		words := strings.Fields(line)
		if len(words) < 4 {
			continue
		}
		var second float64
		if _, err := fmt.Sscan(words[0], &second); err != nil {
			continue
		}
		step := strings.Join(words[1:len(words)-2], " ")
		if step == last {
			continue
		}
		last = step
		after := math.Mod(second-float64(begin.Second())-float64(begin.Nanosecond())/1e9+120, 60)
		fmt.Fprintf(&result, "  after %.1f s: %s\n", after, step)
	}
	return result.String()
}

// BenchmarkHandover hands the same fleet over by this engine and by clusterctl move, in one run.
func BenchmarkHandover(b *testing.B) {
	ctx := b.Context()
	w := newWorld(b, func(s *seeder) {
		s.file(ctx, b, "shared.yaml", "NAMESPACE", "team-a")
		var group errgroup.Group
		group.SetLimit(8)
		for n := range benchClusters {
			group.Go(func() error {
				one := newSeeder(s.side)
				one.uids = s.copyUIDs()
				one.file(ctx, b, "plain.yaml", "NAMESPACE", "team-a", "NAME", fmt.Sprintf("cluster-%03d", n))
				return nil
			})
		}
		_ = group.Wait() // what went wrong is in b
	})
	if b.Failed() {
		b.FailNow()
	}
	objects := 0
	for i := range w.sourceBefore {
		if travels(i) {
			objects++
		}
	}
	results := map[string]measured{}
	for _, p := range []program{stock(b, "team-a"), engine(b)} {
		w.restore(ctx, b, w.beginning)
		m := measure(ctx, b, w, p)
		results[p.name] = m
		if faults := (judge{world: w, status: p.name == "hand-over"}).handedOver(ctx, b); len(faults) > 0 {
			b.Errorf("%s: %s", p.name, strings.Join(sorted(faults)[:min(20, len(faults))], "\n"))
		}
		fmt.Printf("%s: %d clusters, %d objects: %.1f s, %.1f calls per object, %.1f s of processor time: %.0f%% of %d processors\n",
			p.name, benchClusters, objects, m.took.Seconds(), m.calls/float64(objects), m.processor.Seconds(),
			100*m.processor.Seconds()/m.took.Seconds()/float64(runtime.NumCPU()), runtime.NumCPU())
		fmt.Printf("  calls of the source: %v, of the target: %v; processor time of the program itself: %.1f s\n%s",
			m.source, m.target, m.own.Seconds(), m.phases)
	}
	ours, peer := results["hand-over"], results["clusterctl move"]
	bound := "by waiting: for API servers to notice policies, and for controllers to end and to start"
	if ours.processor.Seconds() > 0.7*ours.took.Seconds()*float64(runtime.NumCPU()) {
		bound = "by the processors, which the API servers and etcd share with it"
	}
	fmt.Printf("what bounds it: %s\n", bound)
	fmt.Printf("ratio handover %.1f\n", peer.took.Seconds()/ours.took.Seconds())
}
