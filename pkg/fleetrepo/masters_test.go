package fleetrepo

import (
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
)

// mastersFleet has a root that makes two management clusters: eu, which has clusters in prod, and us, which has none yet.
const mastersFleet = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: masters}
spec:
  git: {url: "https://git.example.com/fleet.git"}
  environments: [{name: regions}, {name: prod}, {name: america}]
  managementClusters:
  - name: root
    cloud: root
    host: {type: kind}
    providers: [{name: docker}]
  - name: eu
    parent: root
    cloud: eu
    providers: [{name: docker}]
  - name: us
    parent: root
    cloud: us
    providers: [{name: docker}]
`

func openMasters(t testing.TB) *Repo {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "fleet.yaml", []byte(mastersFleet))
	r := reopen(t, dir)
	for _, add := range []AddOptions{
		{Name: "eu", Environment: "regions", ManagementCluster: "root", Flavour: "docker", KubernetesVersion: "v1.36.3"},
		{Name: "us", Environment: "america", ManagementCluster: "root", Flavour: "docker", KubernetesVersion: "v1.36.3"},
		{Name: "shop", Environment: "prod", ManagementCluster: "eu", Flavour: "in-memory", KubernetesVersion: "v1.36.3"},
		{Name: "early", Environment: "prod", ManagementCluster: "root", Flavour: "in-memory", KubernetesVersion: "v1.36.3"},
	} {
		e, err := r.Add(add)
		_, r = done(t, r, e, err)
	}
	return r
}

func TestMaster(t *testing.T) {
	r := openMasters(t)
	eu, us := ClusterName{"regions", "eu"}, ClusterName{"america", "us"}
	kindHost := v1alpha1.Host{Type: v1alpha1.HostKind}
	for name, test := range map[string]struct {
		name, environment string
		want              *Master
		err, hint         string
	}{
		"by its name": {name: "eu", want: &Master{
			Name: "eu", Parent: "root", ParentHost: kindHost, Own: eu, Clusters: []ClusterName{eu},
			Has: []ClusterName{{"prod", "shop"}},
		}},
		"by an environment, with what the root has made in it": {
			environment: "prod", want: &Master{
				Name: "eu", Parent: "root", ParentHost: kindHost, Own: eu, Clusters: []ClusterName{eu, {"prod", "early"}},
				Has: []ClusterName{{"prod", "shop"}},
			},
		},
		"by the environment that it is made in": {
			environment: "america",
			want:        &Master{Name: "us", Parent: "root", ParentHost: kindHost, Own: us, Clusters: []ClusterName{us}},
		},
		"nobody's environment": {
			environment: "test",
			err:         "no management cluster with a parent has clusters in environment test", hint: "eu, us",
		},
		"a misspelt name": {name: "ue", err: `there is no management cluster with a parent "ue"`, hint: "eu"},
		"none of several": {
			err:  "several management clusters of this fleet have a parent: eu, us",
			hint: "--management NAME",
		},
		"one without a parent": {name: "root", err: `there is no management cluster with a parent "root"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := r.Master(test.name, test.environment)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || !strings.Contains(diag.Hint(err), test.hint) {
					t.Fatalf("%v (%s)", err, diag.Hint(err))
				}
				return
			}
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
	write(t, r.Dir, "providers/root/v1/clusters/regions/eu/flux.yaml", []byte("kind: Kustomization\n"))
	if _, err := r.Master("eu", ""); err == nil || !strings.Contains(err.Error(), "has the Flux of a workload cluster") {
		t.Errorf("with a Flux of the parent's: %v", err)
	}
	write(t, r.Dir, "providers/us/v1/clusters/america/other/cluster.yaml", must(r.read("providers/eu/v1/clusters/prod/shop/cluster.yaml")))
	write(t, r.Dir, "providers/eu/v1/clusters/america/another/cluster.yaml", must(r.read("providers/eu/v1/clusters/prod/shop/cluster.yaml")))
	if _, err := r.Master("", "america"); err == nil || !strings.Contains(err.Error(),
		"several management clusters that others make: eu, us") || !strings.Contains(diag.Hint(err), "--stand-alone") {
		t.Errorf("two of them: %v (%s)", err, diag.Hint(err))
	}
}

// A management cluster's own cluster goes to itself, with a record in the folder of the management cluster that made it, and back. No other
// management cluster gets it, and it cannot be removed from its place.
func TestHandedOverToItself(t *testing.T) {
	r := openMasters(t)
	before := treeOf(t, r)
	run := &HandedOver{At: time.Date(2026, 11, 23, 12, 0, 0, 0, time.FixedZone("", 3600)), By: "ci: on #runner", Version: "v1.2.3"}
	if _, err := r.Transfer(TransferOptions{Cluster: "eu", To: "us", HandedOver: run}); err == nil ||
		!strings.Contains(diag.Hint(err), "bootstrap --management eu --stand-alone") {
		t.Errorf("to another one: %v (%s)", err, diag.Hint(err))
	}
	for _, cluster := range []string{"eu", "early"} {
		e, err := r.Transfer(TransferOptions{Cluster: cluster, To: "eu", HandedOver: run})
		_, r = done(t, r, e, err)
	}
	const record = "providers/root/v1/handed-over/eu.yaml"
	want := `# What root has handed over to eu, which it made, and what it has begun to. fleetctl keeps it.
handedOver:
- cluster: regions/eu
  at: "2026-11-23T11:00:00Z"
  by: 'ci: on #runner'
  fleetctl: v1.2.3
- cluster: prod/early
  at: "2026-11-23T11:00:00Z"
  by: 'ci: on #runner'
  fleetctl: v1.2.3
`
	if diff := cmp.Diff(want, string(must(r.read(record)))); diff != "" {
		t.Error(diff)
	}
	if layout.InChannels(record) {
		t.Error("the record is taken for what an environment runs")
	}
	for name := range below(treeOf(t, r), "providers/root/v1/clusters") {
		if strings.HasPrefix(name, "regions/eu/") || strings.HasPrefix(name, "prod/early/") {
			t.Errorf("the root would make it again: %s", name)
		}
	}
	if alone, err := r.StandsAlone("eu"); err != nil || !alone {
		t.Errorf("eu stands alone: %t, %v", alone, err)
	}
	if alone, err := r.StandsAlone("us"); err != nil || alone {
		t.Errorf("us stands alone: %t, %v", alone, err)
	}
	if got, err := r.Master("eu", ""); err != nil || !got.Alone || len(got.Clusters) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := r.Remove("eu", false); err == nil || !strings.Contains(err.Error(), "is a management cluster of this fleet") {
		t.Errorf("removed: %v", err)
	}
	if _, err := r.Transfer(TransferOptions{Cluster: "eu", To: "us"}); err == nil {
		t.Error("it was given to another one")
	}
	for _, cluster := range []string{"eu", "early"} {
		e, err := r.Transfer(TransferOptions{Cluster: cluster, To: "root", HandedOver: run})
		_, r = done(t, r, e, err)
	}
	after := treeOf(t, r)
	for _, dir := range []string{"providers/root/v1/clusters/regions/eu", "providers/root/v1/clusters/prod/early"} {
		if diff := cmp.Diff(below(before, dir), below(after, dir)); diff != "" {
			t.Errorf("there and back, %s:\n%s", path.Base(dir), diff)
		}
	}
}

// Git records a hand-over as begun before the work changes hands, and as done afterwards, for each cluster separately.
func TestBegunToHandOver(t *testing.T) {
	r := openMasters(t)
	master := func() *Master {
		t.Helper()
		m, err := r.Master("eu", "prod")
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if m := master(); len(m.Begun) > 0 {
		t.Errorf("begun by nobody: %v", m.Begun)
	}
	run := &HandedOver{At: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC), By: "ci on runner-7", Version: "v1.2.3"}
	e, err := r.BeginHandOver(master(), run)
	_, r = done(t, r, e, err)
	eu, early := ClusterName{"regions", "eu"}, ClusterName{"prod", "early"}
	m := master()
	if diff := cmp.Diff([]ClusterName{eu, early}, m.Begun); diff != "" || m.ByWhom != "2026-11-23T12:00:00Z, ci on runner-7" {
		t.Errorf("by %s:\n%s", m.ByWhom, diff)
	}
	if e, err := r.BeginHandOver(m, run); err != nil {
		t.Error(err)
	} else if plan, err := e.Changes.Plan(r.Dir); err != nil || len(plan) > 0 {
		t.Errorf("said a second time: %+v, %v", plan, err)
	}
	e, err = r.Transfer(TransferOptions{Cluster: "eu", To: "eu", HandedOver: run})
	_, r = done(t, r, e, err)
	if diff := cmp.Diff([]ClusterName{early}, master().Begun); diff != "" {
		t.Error(diff)
	}
	e, err = r.Transfer(TransferOptions{Cluster: "early", To: "eu", HandedOver: run})
	_, r = done(t, r, e, err)
	if record := string(must(r.read("providers/root/v1/handed-over/eu.yaml"))); strings.Contains(record, "handingOver") ||
		strings.Count(record, "cluster: ") != 2 {
		t.Error(record)
	}
	write(t, r.Dir, "providers/root/v1/handed-over/eu.yaml", []byte("handingOver: [{cluster: [}]"))
	if _, err := r.Master("eu", "prod"); err == nil || !strings.Contains(diag.Hint(err), "may have taken over") {
		t.Errorf("a record that nobody can read: %v (%s)", err, diag.Hint(err))
	}
}
