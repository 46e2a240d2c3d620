//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

const (
	// envScale has the numbers of clusters that BenchmarkScale tries, with spaces between them.
	envScale = "SCALE"
	// envTuning is a file with what stands below `tuning:` in fleet.yaml, indented by 8; none is what the managers were released with.
	envTuning = "TUNING"
)

// benchHost makes a management cluster on the embedded host that is removed after the benchmark, and returns it with its kubeconfig.
// tuning is that of fleet.yaml, or "".
func benchHost(b *testing.B, name, tuning string) (*fleet, string) {
	b.Helper()
	f := makeFleet(b, onEmbedded, name)
	declared := fmt.Sprintf(`apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata:
  name: %[1]s
spec:
  environments:
    - name: dev
  managementClusters:
    - name: %[1]s
      kubernetesVersion: %[2]s
      providers:
        - name: docker
`, name, kubernetesVersion)
	if tuning != "" {
		declared += "      tuning:\n" + tuning
	}
	if err := os.WriteFile(filepath.Join(f.dir, "fleet.yaml"), []byte(declared), 0o644); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if out, err := f.command("host", "delete", "--force", "--yes", "--management", name).CombinedOutput(); err != nil {
			b.Errorf("clean up: %v\n%s", err, out)
		}
	})
	var made initResult
	if err := json.Unmarshal(run(b, f.command("init", "--bundle", os.Getenv(envBundle), "-o", "json", "--quiet")), &made); err != nil {
		b.Fatal(err)
	}
	return f, made.Kubeconfig
}

// BenchmarkIdle measures what a persistent embedded host takes while nothing happens: Cluster API, one infrastructure provider, Flux and
// what serves the fleet repo. Run it with `make bench-idle`.
func BenchmarkIdle(b *testing.B) {
	// Controllers are busy with themselves for a while, and Go collects garbage of idle programs every two minutes.
	const settle, over = 150 * time.Second, time.Minute
	for b.Loop() {
		f, _ := benchHost(b, "bench-idle", "")
		time.Sleep(settle)
		before, begin := hostFamily(b, f.base, ""), time.Now()
		time.Sleep(over)
		after, took := hostFamily(b, f.base, ""), time.Since(begin)
		memory := proportionalMemory(b, after)
		used, list := consumers(before, after, took, len(after))
		fmt.Printf("%d processes, over %.0fs:\n  %s\n", len(after), took.Seconds(), strings.Join(list, "\n  "))
		fmt.Printf("idle memory %d MiB\n", memory>>20)
		fmt.Printf("idle cpu %.1f %% of a core\n", share(used, took))
	}
}

// BenchmarkScale declares in-memory clusters in one commit, on a new embedded host for each number of them, and waits until all are
// Available. Run it with `make bench-scale`; SCALE="10 30 100 300" asks for more than the default, TUNING=FILE for other managers.
func BenchmarkScale(b *testing.B) {
	sizes := strings.Fields(os.Getenv(envScale))
	if len(sizes) == 0 {
		b.Fatalf("%s is not set: run this with `make bench-scale`", envScale)
	}
	tuning := ""
	if file := os.Getenv(envTuning); file != "" {
		raw, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		tuning = string(raw)
	}
	var all []scaled
	for _, size := range sizes {
		n, err := strconv.Atoi(size)
		if err != nil || n < 1 {
			b.Fatalf("%s: %q is not a number of clusters", envScale, size)
		}
		b.Run(size, func(b *testing.B) {
			for b.Loop() {
				all = append(all, scale(b, n, tuning))
			}
		})
	}
	for i, s := range all {
		fmt.Println(s)
		if i > 0 {
			before := all[i-1]
			fmt.Printf("    %.1f times the clusters take %.1f times the time, %.1f times the processor, %.1f times the memory\n",
				float64(s.clusters)/float64(before.clusters), s.took.Seconds()/before.took.Seconds(), s.cpu.Seconds()/before.cpu.Seconds(),
				float64(s.memory)/float64(before.memory))
		}
	}
}

// scaled is what a number of clusters took.
type scaled struct {
	clusters     int
	first, took  time.Duration
	cpu          time.Duration // of all processes
	idle, memory int64         // bytes, before the clusters and with them
	calls        int
	change       time.Duration // until a commit that changes one cluster has reached all that it reaches
	changeCPU    time.Duration
}

func (s scaled) String() string {
	n := float64(s.clusters)
	return fmt.Sprintf("%4d clusters: first Available after %5.1f s, all after %6.1f s (%.1f s each); %5.0f s of processor (%.1f s each); "+
		"%5d MiB (%.1f MiB each above %d); %6d API calls (%d each); a commit that changes one: %.1f s, %.1f s of processor",
		s.clusters, s.first.Seconds(), s.took.Seconds(), s.took.Seconds()/n, s.cpu.Seconds(), s.cpu.Seconds()/n,
		s.memory>>20, float64(s.memory-s.idle)/n/(1<<20), s.idle>>20, s.calls, s.calls/s.clusters, s.change.Seconds(), s.changeCPU.Seconds())
}

func scale(b *testing.B, n int, tuning string) scaled {
	b.Helper()
	f, kubeconfig := benchHost(b, fmt.Sprintf("bench-%d", n), tuning)
	raw, err := os.ReadFile(kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	client, err := kube.New(raw, kube.Options{})
	if err != nil {
		b.Fatal(err)
	}
	idle := hostFamily(b, f.base, "")
	idleMemory := proportionalMemory(b, idle)
	idleCalls, _ := apiCalls(b, kubeconfig)
	declareClusters(b, f, n)

	begin := time.Now()
	first := awaitClusters(b, client, n)
	result := scaled{clusters: n, first: first, took: time.Since(begin), idle: idleMemory}
	now := hostFamily(b, f.base, "")
	result.memory = proportionalMemory(b, now)
	calls, _ := apiCalls(b, kubeconfig)
	result.calls = calls - idleCalls
	var list []string
	result.cpu, list = consumers(idle, now, result.took, 8)
	result.change = changeOne(b, f, client, n)
	result.changeCPU, _ = consumers(now, hostFamily(b, f.base, ""), result.change, 8)
	fmt.Printf("%s\n  %s\n", result, strings.Join(list, "\n  "))
	return result
}

// changeOne commits a change of one cluster, and returns how long Flux takes to apply the commit everywhere: until the chart is made of it,
// and every release has what the chart then is.
func changeOne(b *testing.B, f *fleet, client *kube.Client, n int) time.Duration {
	b.Helper()
	file := filepath.Join(f.dir, filepath.FromSlash(clusterPath("mem-000")))
	declared, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(file, append(declared, "    labels: {changed: \"true\"}\n"...), 0o644); err != nil {
		b.Fatal(err)
	}
	run(b, exec.Command("git", "-C", f.dir, "-c", "user.name=bench", "-c", "user.email=bench@example.com", "commit",
		"-qam", "Change a cluster"))
	begin, head := time.Now(), strings.TrimSpace(string(run(b, exec.Command("git", "-C", f.dir, "rev-parse", "HEAD"))))
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute+time.Duration(n)*5*time.Second)
	defer cancel()
	version := ""
	chartKind := schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "HelmChart"}
	if err := client.Watch(ctx, chartKind, kube.Selection{}, func(charts kube.Objects) (bool, error) {
		for _, c := range charts {
			made, _, _ := unstructured.NestedString(c.Object, "status", "observedSourceArtifactRevision")
			version, _, _ = unstructured.NestedString(c.Object, "status", "artifact", "revision")
			if !strings.HasSuffix(made, head) {
				return false, nil
			}
		}
		return len(charts) > 0, nil
	}); err != nil {
		b.Fatalf("the chart is not made of %s: %v", head, err)
	}
	releaseKind := schema.GroupVersionKind{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"}
	if err := client.Watch(ctx, releaseKind, kube.Selection{}, func(releases kube.Objects) (bool, error) {
		have := 0
		for _, r := range releases {
			history, _, _ := unstructured.NestedSlice(r.Object, "status", "history")
			if len(history) == 0 {
				continue
			}
			if latest, _ := history[0].(map[string]any); latest["chartVersion"] == version &&
				meta.IsStatusConditionTrue(kube.Conditions(r), "Ready") {
				have++
			}
		}
		return have == n, nil
	}); err != nil {
		b.Fatalf("not every release has chart %s: %v", version, err)
	}
	return time.Since(begin)
}

// awaitClusters returns when n clusters are Available, with the time until the first was. It watches: asking for all of them each second
// would be a good part of what is measured.
func awaitClusters(b *testing.B, client *kube.Client, n int) (first time.Duration) {
	b.Helper()
	limit := 5*time.Minute + time.Duration(n)*10*time.Second
	ctx, cancel := context.WithTimeout(b.Context(), limit)
	defer cancel()
	begin, told, available := time.Now(), time.Now(), 0
	kind := schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"}
	if err := client.Watch(ctx, kind, kube.Selection{}, func(clusters kube.Objects) (bool, error) {
		available = 0
		for _, c := range clusters {
			if meta.IsStatusConditionTrue(kube.Conditions(c), "Available") {
				available++
			}
		}
		if first == 0 && available > 0 {
			first = time.Since(begin)
		}
		if time.Since(told) > 15*time.Second {
			told = time.Now()
			fmt.Printf("  %d of %d Available, %d declared, after %.0fs\n", available, n, len(clusters), time.Since(begin).Seconds())
		}
		return available == n, nil
	}); err != nil {
		b.Fatalf("%d of %d clusters are Available after %.0fs: %v", available, n, time.Since(begin).Seconds(), err)
	}
	return first
}

// declareClusters commits n clusters, each as the example has its own.
func declareClusters(b *testing.B, f *fleet, n int) {
	b.Helper()
	declared, chart := example(b, "laptop/"+clusterPath("demo")), example(b, "laptop/"+chartPath("in-memory"))
	for i := range n {
		name := fmt.Sprintf("mem-%03d", i)
		path := filepath.Join(f.dir, filepath.FromSlash(clusterPath(name)))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		text := strings.NewReplacer(": demo\n", ": "+name+"\n").Replace(declared)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(f.dir, filepath.FromSlash(chartPath("in-memory"))), []byte(chart), 0o644); err != nil {
		b.Fatal(err)
	}
	run(b, exec.Command("git", "-C", f.dir, "add", "providers"))
	run(b, exec.Command("git", "-C", f.dir, "-c", "user.name=bench", "-c", "user.email=bench@example.com", "commit", "-qm", "Add clusters"))
}
