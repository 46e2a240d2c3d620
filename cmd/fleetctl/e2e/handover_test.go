//go:build e2e

package e2e

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/ownership"
)

// pivotResult is what pivot prints with -o json.
type pivotResult struct {
	Outcome string `json:"outcome"`
	Plan    struct {
		Counts   map[string]int `json:"counts"`
		Clusters []string       `json:"clusters"`
	} `json:"plan"`
	Report struct {
		Moved    map[string]int `json:"moved"`
		Clusters []string       `json:"clusters"`
	} `json:"report"`
}

// handedClusters is how many clusters TestHandOver hands over.
var handedClusters = flag.Int("clusters", 20, "number of clusters that TestHandOver hands over; at least 4")

// TestHandOver hands clusters with machines from one management cluster to another, with the real controllers of both: the source and the
// target are embedded hosts, each in a network of its own.
func TestHandOver(t *testing.T) {
	h := newHandedOver(t)
	if !h.step("the source makes clusters", h.declares) || !h.step("and more of them", h.declaresMore) ||
		!h.step("the target is a cluster with providers and no fleet", h.prepares) {
		return
	}
	before := h.machines(h.source)
	pivot := []string{"pivot", "--bundle", os.Getenv(envBundle), "-o", "json"}
	to := append(slices.Clone(pivot), "--to-kubeconfig", h.target)

	if !h.step("--dry-run counts, and changes nothing", func(t *testing.T) {
		r := decode[pivotResult](t, h.ok(append(slices.Clone(to), "--dry-run")...).stdout)
		if r.Outcome != "planned" || !slices.Equal(r.Plan.Clusters, h.clusters) || r.Plan.Counts["Machine"] != len(before) {
			t.Errorf("it says %+v", r)
		}
		if st, code := h.status(); code != 0 || !st.Ready {
			t.Errorf("status: exit %d, %+v", code, st.Problems)
		}
	}) {
		return
	}
	if !h.step("killed in the midst of it, and undone from a machine that knows nothing", func(t *testing.T) {
		h.killedAt(h.targetClient, handover.PhaseCopied, to)
		h.fails(1, []string{"is being handed over", "pivot --abort"}, "init", "--bundle", os.Getenv(envBundle))
		h.ok("pivot", "--abort", "--to-kubeconfig", h.target)
		h.sameMachines(t, before, h.source)
		if left := h.machines(h.targetClient); len(left) > 0 {
			t.Errorf("machines at the target: %v", left)
		}
		h.scaled(h.source, "one", 2)
	}) {
		return
	}
	before = h.machines(h.source)
	if !h.step("killed after the work has changed hands, it goes on", func(t *testing.T) {
		h.killedAt(h.source, handover.PhaseCommitted, to)
		r := decode[pivotResult](t, h.ok(pivot...).stdout)
		if r.Outcome != "handed-over" || !slices.Equal(r.Report.Clusters, h.clusters) {
			t.Errorf("it says %+v", r)
		}
	}) {
		return
	}
	h.step("the clusters live on at the target, with the same machines", func(t *testing.T) {
		h.ready(enough())
		h.sameMachines(t, before, h.targetClient)
		if left := h.machines(h.source); len(left) > 0 {
			t.Errorf("machines at the source: %v", left)
		}
	})
	h.step("a commit still scales one", func(*testing.T) { h.scaled(h.targetClient, "two", 2) })
	h.step("init refuses at the source", func(*testing.T) {
		h.fails(1, []string{"was pivoted to target"}, "init", "--bundle", os.Getenv(envBundle))
	})
	h.step("the source goes", func(t *testing.T) {
		h.ok("host", "delete", "--yes")
		h.ready(enough())
		if st, _ := h.status(); len(st.Clusters) != *handedClusters {
			t.Errorf("status: %+v", st)
		}
	})
	h.step("connected to the target, this machine works with it as with one of its own", func(t *testing.T) {
		before := h.machines(h.targetClient)
		h.ok("connect")
		h.ok("init", "--bundle", os.Getenv(envBundle))
		h.ok("backup", "--to", filepath.Join(h.base, "snapshots"))
		if st, code := h.status(); code != 0 || len(st.Clusters) != *handedClusters {
			t.Errorf("status: exit %d, %+v", code, st)
		}
		h.sameMachines(t, before, h.targetClient)
		h.ok("connect", "--forget")
	})
}

// TestSourceLost: the source is lost with its machine, right after the work has changed hands. Another machine that reaches the target and
// the fleet repo goes on.
func TestSourceLost(t *testing.T) {
	h := newHandedOver(t)
	if !h.step("the source makes clusters", h.declares) || !h.step("the target is a cluster with providers and no fleet", h.prepares) {
		return
	}
	before := h.machines(h.source)
	pivot := []string{"pivot", "--bundle", os.Getenv(envBundle), "-o", "json"}
	to := append(slices.Clone(pivot), "--to-kubeconfig", h.target)
	if !h.step("killed, and all that the source was is gone", func(t *testing.T) {
		h.killedAt(h.source, handover.PhaseCommitted, to)
		kill(t, h.on.processes(h.fleet))
		h.forgets()
		h.fails(2, []string{"nothing says where to pivot to"}, pivot...)
	}) {
		return
	}
	h.step("from the target alone", func(t *testing.T) {
		r := decode[pivotResult](t, h.ok(to...).stdout)
		if r.Outcome != "handed-over" || !slices.Equal(r.Report.Clusters, h.clusters) {
			t.Errorf("it says %+v", r)
		}
		h.ready(5 * time.Minute)
		h.sameMachines(t, before, h.targetClient)
		h.scaled(h.targetClient, "two", 2)
	})
	h.step("init makes no second one", func(*testing.T) {
		h.fails(1, []string{"was pivoted to target"}, "init", "--bundle", os.Getenv(envBundle))
	})
}

// handedOver is a fleet, and the cluster that takes over its management cluster's work.
type handedOver struct {
	*fleet

	whole  *testing.T // not the step that is at work
	server *gittest.HTTPS
	source *kube.Client

	clusters []string // those that are declared, as namespace/name, sorted

	other        *fleet
	place        *elsewhere
	target       string // the file with its kubeconfig
	targetClient *kube.Client
}

func newHandedOver(t *testing.T) *handedOver {
	t.Helper()
	h := newSource(t)
	h.place = newElsewhere(t)
	h.other = makeFleet(t, onEmbedded, "e2e-target")
	h.other.in = h.place
	t.Cleanup(func() { kill(t, processesOf(t, h.other.base)) })
	return h
}

// newSource is a fleet whose management cluster is to hand its work over, or to be lost.
func newSource(t *testing.T) *handedOver {
	t.Helper()
	return &handedOver{whole: t, fleet: newFleetOn(t, onEmbedded, "e2e-source"), server: gittest.NewHTTPS(t, gittest.Options{})}
}

// declares makes the source, with two clusters that have a worker each.
func (h *handedOver) declares(t *testing.T) { h.declaresWith(t, "") }

// declaresWith is the same, with more in the spec of fleet.yaml.
func (h *handedOver) declaresWith(t *testing.T, more string) {
	h.servedBy(h.server, "docker", more)
	if *handedClusters > 50 {
		h.tuned()
	}
	made := decode[initResult](t, h.ok("init", "--bundle", os.Getenv(envBundle), "-o", "json").stdout)
	h.source = h.client(made.Kubeconfig)
	h.addsClusters("--push")
	h.available("one", 5*time.Minute)
	h.available("two", 5*time.Minute)
	h.ready(5 * time.Minute)
}

// addsClusters declares two clusters that have a worker each.
func (h *handedOver) addsClusters(how string) {
	h.t.Helper()
	for _, name := range []string{"one", "two"} {
		h.adds(name, "--set", "pools[0].name=md-0", "--set", "pools[0].replicas=1", how)
	}
}

// tuned ends fleet.yaml with the tuning for a small machine. As released, the managers work on a hundred objects at once, and a hundred
// clusters that come up together then take three times as long on two cores.
func (h *handedOver) tuned() {
	h.t.Helper()
	tuning, err := os.ReadFile(filepath.Join("testdata", "scale-tuning.yaml"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.writes("fleet.yaml", h.reads("fleet.yaml")+"    tuning:\n"+string(tuning))
}

// enough is the time in which all clusters have to be Available: on two cores, each takes some five seconds of processor time.
func enough() time.Duration { return 5*time.Minute + time.Duration(*handedClusters)*20*time.Second }

// declaresMore declares clusters with a control plane alone, until there are as many as the test is to hand over. The first is declared by
// a command, and the others are copies of its file in one commit.
func (h *handedOver) declaresMore(t *testing.T) {
	const first, at = "more-000", "providers/docker/v1/clusters/dev/%s/cluster.yaml"
	h.adds(first, "--set", "pools=[]", "--push")
	declared := h.reads(fmt.Sprintf(at, first))
	files := map[string]string{}
	for len(h.clusters) < *handedClusters {
		name := fmt.Sprintf("more-%03d", len(files)+1)
		files[fmt.Sprintf(at, name)] = strings.ReplaceAll(declared, first, name)
		h.clusters = append(h.clusters, name+"/"+name)
	}
	slices.Sort(h.clusters)
	h.commit("More clusters", files)
	h.pushesTo(t, h.server)
	eventually(t, "all are Available", enough(), func() string { // one look for all: status of hundreds takes seconds
		missing := slices.Clone(h.clusters)
		st, _ := h.status()
		for _, c := range st.Clusters {
			if c.Available {
				missing = slices.DeleteFunc(missing, func(m string) bool { return path.Base(m) == c.Name })
			}
		}
		if len(missing) == 0 {
			return ""
		}
		return fmt.Sprintf("%d clusters are not, such as %s", len(missing), missing[0])
	})
	h.ready(enough())
}

// adds declares a cluster.
func (h *handedOver) adds(name string, more ...string) {
	h.t.Helper()
	h.ok(slices.Concat([]string{
		"cluster", "add", name, "--flavour", "in-memory", "--environment", "dev",
		"--set", "kubernetesVersion=" + kubernetesVersion,
	}, more)...)
	h.clusters = append(h.clusters, name+"/"+name)
	slices.Sort(h.clusters)
}

// prepares makes the target: the host and the providers of a fleet that is no more.
func (h *handedOver) prepares(t *testing.T) {
	h.other.t = t
	made := decode[initResult](t, h.other.ok(initArgs()...).stdout)
	remote, err := url.Parse(h.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	h.place.leadIn(h.whole, remote.Host)
	h.leadsTo(t, made.Kubeconfig, "target")
	h.withoutFleet(t)
}

// leadsTo makes the target reachable from here: its API server, and its kubeconfig in a file of that name.
func (h *handedOver) leadsTo(t *testing.T, kubeconfig, name string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		server, err := url.Parse(cluster.Server)
		if err != nil {
			t.Fatal(err)
		}
		h.place.leadOut(h.whole, server.Host)
	}
	h.target = filepath.Join(h.base, name+".kubeconfig")
	if err := clientcmd.WriteToFile(*config, h.target); err != nil {
		t.Fatal(err)
	}
	h.targetClient = h.client(h.target)
}

// withoutFleet takes from the target what its own fleet has put there, as somebody does who gives it away.
func (h *handedOver) withoutFleet(t *testing.T) {
	source, claim := object("source.toolkit.fluxcd.io/v1", "GitRepository"), object("v1", "ConfigMap")
	source.SetNamespace("flux-system")
	source.SetName("flux-system")
	claim.SetNamespace(ownership.ClaimKey.Namespace)
	claim.SetName(ownership.ClaimKey.Name)
	for _, o := range []*unstructured.Unstructured{source, claim} {
		if err := h.targetClient.WithWatch.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the Flux of the target follows nothing", time.Minute, func() string { return h.unsynced(t) })
}

// unsynced deletes the Kustomizations of the target and leaves what they applied, and says which are there still: one that was at work
// makes itself anew.
func (h *handedOver) unsynced(t *testing.T) string {
	kustomizations := &unstructured.UnstructuredList{}
	kustomizations.SetGroupVersionKind(object("kustomize.toolkit.fluxcd.io/v1", "KustomizationList").GroupVersionKind())
	if err := h.targetClient.List(t.Context(), kustomizations); err != nil {
		return err.Error()
	}
	var names []string
	for i := range kustomizations.Items {
		k := &kustomizations.Items[i]
		names = append(names, k.GetName())
		err := h.targetClient.Patch(t.Context(), k, client.RawPatch("application/merge-patch+json",
			[]byte(`{"spec":{"prune":false,"suspend":true}}`)))
		if err == nil {
			err = h.targetClient.WithWatch.Delete(t.Context(), k)
		}
		if client.IgnoreNotFound(err) != nil {
			return err.Error()
		}
	}
	return strings.Join(names, ", ")
}

// killedAt kills a fleetctl as soon as the journal at c says that the phase is reached.
func (f *fleet) killedAt(c *kube.Client, phase handover.Phase, args []string) {
	f.t.Helper()
	r := f.begin(args...)
	r.killedWhen(func() bool {
		journal, err := handover.ReadJournal(f.t.Context(), c)
		if err != nil {
			f.t.Fatal(err)
		}
		return journal != nil && journal.Phase == phase
	})
	if journal, err := handover.ReadJournal(f.t.Context(), c); err != nil || journal.Phase == handover.PhaseReleased {
		f.t.Fatalf("killed too late: %+v, %v", journal, err)
	}
}

// machines are the Machines and what the provider made for each: names and provider ids.
func (h *handedOver) machines(c *kube.Client) []string {
	h.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(object("cluster.x-k8s.io/v1beta2", "MachineList").GroupVersionKind())
	if err := c.List(h.t.Context(), list); err != nil {
		h.t.Fatal(err)
	}
	var found []string
	for _, m := range list.Items {
		id, _, _ := unstructured.NestedString(m.Object, "spec", "providerID")
		found = append(found, m.GetNamespace()+"/"+m.GetName()+" "+id)
	}
	slices.Sort(found)
	return found
}

func (h *handedOver) sameMachines(t *testing.T, before []string, c *kube.Client) {
	t.Helper()
	if now := h.machines(c); !slices.Equal(now, before) {
		t.Errorf("before\n\t%s\nnow\n\t%s", strings.Join(before, "\n\t"), strings.Join(now, "\n\t"))
	}
}

// scaled changes the size of a cluster's pool by a commit, and waits until the pool has this size.
func (h *handedOver) scaled(c *kube.Client, name string, replicas int) {
	h.t.Helper()
	h.ok("pool", "scale", name, "md-0", "--replicas", fmt.Sprint(replicas), "--push")
	eventually(h.t, fmt.Sprintf("%s has %d workers", name, replicas), 4*time.Minute, func() string {
		running := 0
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(object("cluster.x-k8s.io/v1beta2", "MachineList").GroupVersionKind())
		if err := c.List(h.t.Context(), list, client.InNamespace(name)); err != nil {
			return err.Error()
		}
		for _, m := range list.Items {
			if phase, _, _ := unstructured.NestedString(m.Object, "status", "phase"); phase == "Running" {
				running++
			}
		}
		if running == replicas+1 && len(list.Items) == running { // one that is to go is gone
			return ""
		}
		return fmt.Sprintf("%d of %d machines are Running, and there are %d", running, replicas+1, len(list.Items))
	})
}
