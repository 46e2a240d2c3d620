//go:build e2e

// Package fleetbench measures the commands that work on a whole fleet repo, beside the programs that teams use for it otherwise, on the
// same files in the same run.
package fleetbench

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/render/rendertest"
)

// The environment that `make bench-fleet` sets.
const (
	envProgram = "FLEETCTL_E2E_PROGRAM"
	envPeers   = "FLEETCTL_BENCH_PEERS" // folder with helm, kustomize and kubeconform
	envSizes   = "SIZES"
	envSample  = "SAMPLE"
)

// took is what one program took.
type took struct {
	wall, cpu time.Duration
	peak      int64 // bytes that the process had resident at most
	note      string
}

func (t took) String() string {
	return fmt.Sprintf("%9.2f s  %9.2f s of processors  %5d MiB  %s", t.wall.Seconds(), t.cpu.Seconds(), t.peak>>20, t.note)
}

// bench is one run.
type bench struct {
	*testing.B
	program, peers, cache string
	sample                int
	results               map[string]map[int]took
}

// BenchmarkFleet runs every measurement once for each size, and prints the ratios at the end: a peer's time over ours.
func BenchmarkFleet(b *testing.B) {
	m := &bench{B: b, program: need(b, envProgram), peers: need(b, envPeers), sample: number(b, envSample), results: map[string]map[int]took{}}
	var sizes []int
	for s := range strings.FieldsSeq(need(b, envSizes)) {
		n, err := strconv.Atoi(s)
		if err != nil || n < 8 {
			b.Fatalf("%s: %q is no size of a fleet", envSizes, s)
		}
		sizes = append(sizes, n)
	}
	for b.Loop() {
		for _, n := range sizes {
			m.fleet(n)
		}
		if len(sizes) == 1 {
			sizes = append([]int{m.smaller(sizes[0])}, sizes...)
		}
	}
	m.seeded()
	m.ratios(sizes)
}

func need(b *testing.B, name string) string {
	b.Helper()
	value := os.Getenv(name)
	if value == "" {
		b.Fatalf("%s is not set: run this with make bench-fleet", name)
	}
	return value
}

func number(b *testing.B, name string) int {
	b.Helper()
	n, err := strconv.Atoi(need(b, name))
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// fleet measures one size.
func (m *bench) fleet(n int) {
	dir := m.TempDir()
	m.cache = m.TempDir()
	if err := rendertest.Write(dir, n); err != nil {
		m.Fatal(err)
	}
	git(m.B, dir, "init", "--quiet", "--initial-branch", "main")
	git(m.B, dir, "add", "--all")
	git(m.B, dir, "-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "--quiet", "--message", "Begin")

	fmt.Printf("== %d clusters\n", n)
	m.note(n, "cluster list", m.own(dir, "cluster", "list"))
	m.note(n, "render cold", m.own(dir, "render"))
	m.note(n, "render again", m.own(dir, "render"))
	change(m.B, dir, 7, "4")
	m.note(n, "render after one change", m.own(dir, "render"))
	m.note(n, "diff after one change", m.own(dir, "diff"))
	change(m.B, dir, 7, "5")
	m.note(n, "diff after another", m.own(dir, "diff", "--impact"))
	m.validate(n, dir)
	m.note(n, "helm template", m.helm(dir, n))
	m.note(n, "kustomize build", m.kustomize(dir, n))
}

// smaller measures validate alone on a fleet of a fifth, to tell how it grows where only one size is asked for. It returns that size.
func (m *bench) smaller(n int) int {
	n = max(n/5, 8)
	dir := m.TempDir()
	m.cache = m.TempDir()
	if err := rendertest.Write(dir, n); err != nil {
		m.Fatal(err)
	}
	fmt.Printf("== %d clusters, validate alone\n", n)
	m.validate(n, dir)
	return n
}

func (m *bench) note(n int, name string, t took) {
	if m.results[name] == nil {
		m.results[name] = map[int]took{}
	}
	m.results[name][n] = t
	fmt.Printf("   %-26s %s\n", name, t)
}

// own runs fleetctl.
func (m *bench) own(dir string, args ...string) took {
	m.Helper()
	cmd := exec.CommandContext(m.Context(), m.program, append(args, "--repo", dir, "--cache-dir", m.cache)...)
	t, err := run(cmd)
	if err != nil {
		m.Fatalf("fleetctl %s: %v", strings.Join(args, " "), err)
	}
	return t
}

// run measures a program. Its output goes to a pipe that is read and dropped: a file would measure the disk.
func run(cmd *exec.Cmd) (took, error) {
	var out counter
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	start := time.Now()
	err := cmd.Run()
	t := took{wall: time.Since(start)}
	if err != nil {
		return t, fmt.Errorf("%w: %.2000s", err, stderr.String())
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		t.peak = usage.Maxrss << 10
	}
	t.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return t, nil
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// rounds is how often validate and kubeconform are measured, in turn: of each the median counts.
const rounds = 3

// validate measures `fleetctl validate` with nothing kept from earlier and once more with what that kept, and kubeconform on what renders.
func (m *bench) validate(n int, dir string) {
	args := []string{"validate", "--crds", need(m.B, "FLEETCTL_BENCH_CRDS")}
	peer := m.kubeconform(dir)
	var cold, again, theirs []took
	for range rounds {
		cache := m.TempDir()
		cold = append(cold, m.ownIn(dir, cache, args...))
		again = append(again, m.ownIn(dir, cache, args...))
		theirs = append(theirs, peer())
	}
	m.note(n, "validate cold", median(cold))
	m.note(n, "validate again", median(again))
	m.note(n, "kubeconform", median(theirs))
}

// median is the run in the middle by its time, with the most memory that any of them took.
func median(all []took) took {
	slices.SortFunc(all, func(a, b took) int { return cmp.Compare(a.wall, b.wall) })
	t := all[len(all)/2]
	for _, other := range all {
		t.peak = max(t.peak, other.peak)
	}
	t.note = strings.TrimPrefix(fmt.Sprintf("%s, median of %d", t.note, len(all)), ", ")
	return t
}

func (m *bench) ownIn(dir, cache string, args ...string) took {
	kept := m.cache
	m.cache = cache
	defer func() { m.cache = kept }()
	return m.own(dir, args...)
}

// change gives the last pool of a cluster another size.
func change(b *testing.B, dir string, i int, replicas string) {
	b.Helper()
	name := filepath.Join(dir, filepath.FromSlash(rendertest.File(i)))
	content, err := os.ReadFile(name)
	if err != nil {
		b.Fatal(err)
	}
	lines := strings.Split(string(content), "\n")
	for at, line := range slices.Backward(lines) {
		if before, _, ok := strings.Cut(line, "replicas: "); ok {
			lines[at] = before + "replicas: " + replicas
			break
		}
	}
	if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		b.Fatal(err)
	}
}

func git(b *testing.B, dir string, args ...string) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), "git", append([]string{"-C", dir}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("git: %v: %s", err, out)
	}
}

// ratios are the lines that others read: a peer's time over ours.
func (m *bench) ratios(sizes []int) {
	for _, n := range sizes {
		for _, r := range []struct{ name, peer, own string }{
			{"render", "helm template", "render cold"},
			{"render-again", "helm template", "render after one change"},
			{"validate", "kubeconform", "validate cold"},
			{"validate-again", "kubeconform", "validate again"},
		} {
			peer, own := m.results[r.peer][n], m.results[r.own][n]
			if peer.wall == 0 || own.wall == 0 {
				continue
			}
			fmt.Printf("ratio %s-%d %.2f, of processors %.2f\n", r.name, n, peer.wall.Seconds()/own.wall.Seconds(),
				peer.cpu.Seconds()/own.cpu.Seconds())
		}
	}
	if first, last := sizes[0], sizes[len(sizes)-1]; first != last {
		for _, name := range []string{
			"cluster list", "render cold", "render after one change", "diff after one change", "validate cold", "validate again", "kubeconform",
		} {
			a, b := m.results[name][first], m.results[name][last]
			if a.wall == 0 || b.wall == 0 {
				continue
			}
			fmt.Printf("growth %q from %d to %d clusters, %.1f times as many: time %.1f times, memory %.1f times\n", name, first, last,
				float64(last)/float64(first), b.wall.Seconds()/a.wall.Seconds(), float64(b.peak)/float64(a.peak))
		}
	}
}
