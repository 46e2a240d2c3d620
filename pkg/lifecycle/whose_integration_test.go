//go:build integration

package lifecycle

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/converge/convergetest"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/leaving"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// beside is another fleet repo, with a Git server of its own and on another machine, for the same cluster.
func (e *existingCluster) beside(t *testing.T) *existingCluster {
	t.Helper()
	other := &existingCluster{convergetest.Cluster{
		Client: e.Client, Kubeconfig: e.Kubeconfig, Git: gittest.NewHTTPS(t, gittest.Options{}), Dir: t.TempDir(), Deps: e.Deps,
	}}
	other.Deps.Store = state.Store{Dir: t.TempDir()}
	return other
}

// Two fleets with the same names, on one cluster: the second is told whose it is, and nothing is touched; from its own repo, cloned
// anywhere, the first goes on.
func TestAnotherFleetsCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	first := newExistingCluster(t)
	s, err := first.Take(ctx, t)
	if err != nil {
		t.Fatal(err)
	}
	id := s.Identity()
	if err := s.ConfirmClaim(ctx, first.Client); err != nil {
		t.Fatal(err)
	}
	commitIdentity := func(e *existingCluster) {
		if err := os.WriteFile(filepath.Join(e.Dir, fleetrepo.IdentityFile), fleetrepo.IdentityContent(id), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commitIdentity(first)

	second := first.beside(t)
	t.Run("init", func(t *testing.T) {
		before := first.namespaces(t)
		_, err := Init(ctx, second.Deps, second.Options(t, "admin"))
		refused(t, err, first.Git.URL)
		if after := first.namespaces(t); !slices.Equal(before, after) {
			t.Errorf("namespaces are %q, were %q", after, before)
		}
		if head := second.Git.Head(t, "main"); head != "" {
			t.Errorf("%s was pushed", head)
		}
		for _, name := range []string{"cluster.json", management.KubeconfigFile} {
			if _, err := os.Stat(second.Deps.Store.Cluster("mgmt").Path(name)); err == nil {
				t.Errorf("%s was written", name)
			}
		}
	})
	t.Run("init may not skip it", func(t *testing.T) {
		o := second.Options(t, "admin")
		o.SkipPreflight = []string{converge.CheckFleetName, converge.CheckFluxName, "name"}
		_, err := Init(ctx, second.Deps, o)
		refused(t, err, first.Git.URL)
	})
	t.Run("bootstrap", func(t *testing.T) {
		_, err := Bootstrap(ctx, second.Deps, BootstrapOptions{Options: second.Options(t, "admin")})
		refused(t, err, first.Git.URL)
	})
	t.Run("doctor", func(t *testing.T) {
		report, err := Doctor(ctx, second.Deps, second.Options(t, "admin"))
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(report.Checks, func(r preflight.Report) bool { return r.Name == converge.CheckFleetName })
		if i < 0 || report.Checks[i].Status != preflight.StatusFail || !strings.Contains(report.Checks[i].Summary, first.Git.URL) {
			t.Errorf("%+v", report.Checks)
		}
	})
	t.Run("what works with it", func(t *testing.T) {
		// A state folder that says that it is the second's: of a cluster that was made anew meanwhile.
		s, err := session.Open(ctx, second.Deps, second.Options(t, "admin"))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Cluster.Save(s.Record()); err != nil {
			t.Fatal(err)
		}
		target, err := management.Find(second.Deps.Store, "mgmt", second.Dir)
		if err != nil {
			t.Fatal(err)
		}
		_, err = target.Client(ctx)
		refused(t, err, first.Git.URL)
		_, err = Teardown(ctx, second.Deps, TeardownOptions{Target: target, DeleteClusters: true})
		refused(t, err, first.Git.URL)
		err = leaving.AwaitRemoval(ctx, second.Deps, leaving.RemovalOptions{Target: target,
			Cluster: fleetrepo.Cluster{Name: "alpha"}, Deletes: true})
		refused(t, err, first.Git.URL)
		_, err = management.StartHost(ctx, second.Deps, target)
		refused(t, err, first.Git.URL)
		if from := management.StatusSources(ctx, target); from.Client != nil || !errors.Is(from.Unreachable, ownership.ErrOtherFleet) {
			t.Errorf("status reads it: %v", from.Unreachable)
		}
	})
	t.Run("its record on this machine", func(t *testing.T) {
		stranger := second.beside(t)
		stranger.Deps.Store = first.Deps.Store
		before := read(t, first.Deps.Store.Cluster("mgmt").Path("cluster.json"))
		_, err := Init(ctx, stranger.Deps, stranger.Options(t, "admin"))
		refused(t, err, first.Git.URL)
		_, err = management.Find(first.Deps.Store, "mgmt", stranger.Dir)
		refused(t, err, first.Git.URL)
		_, err = management.Find(first.Deps.Store, "", stranger.Dir)
		refused(t, err, first.Git.URL)
		if after := read(t, first.Deps.Store.Cluster("mgmt").Path("cluster.json")); after != before {
			t.Errorf("the record is\n%s\nwas\n%s", after, before)
		}
	})
	t.Run("a clone, on another machine", func(t *testing.T) {
		clone := first.beside(t)
		clone.Git = first.Git
		commitIdentity(clone)
		if s, err := clone.Take(ctx, t); err != nil || s.Identity() != id {
			t.Errorf("%s, %v", s.Identity(), err)
		}
	})
	t.Run("a clone of before the identity was committed", func(t *testing.T) {
		clone := first.beside(t)
		clone.Git = first.Git
		if s, err := clone.Take(ctx, t); err != nil || s.Identity() != id {
			t.Errorf("%s, %v", s.Identity(), err)
		}
	})
	t.Run("the same fleet, under another name", func(t *testing.T) {
		o := first.Options(t, "admin")
		file := filepath.Join(first.Dir, v1alpha1.FileName)
		if err := os.WriteFile(file, []byte(strings.Replace(read(t, file), "- name: mgmt", "- name: other", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := session.Open(ctx, first.Deps, o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := converge.ClaimCluster(ctx, s, first.Client, converge.RepoView{}); err == nil ||
			!strings.Contains(err.Error(), "management cluster mgmt") {
			t.Errorf("got %v", err)
		}
	})
}

func refused(t *testing.T, err error, whose string) {
	t.Helper()
	if !errors.Is(err, ownership.ErrOtherFleet) && (err == nil || !strings.Contains(err.Error(), ownership.ErrOtherFleet.Error())) ||
		!strings.Contains(err.Error(), whose) || diag.Hint(err) == "" {
		t.Errorf("got %v, hint %q; want a refusal that names %s", err, diag.Hint(err), whose)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// Of fleets that claim a cluster at the same time one wins, and all others are told which.
func TestOneClaimWins(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	first := newExistingCluster(t)
	const racers = 6
	var sessions []*session.Session
	for range racers {
		s, err := session.Open(ctx, first.Deps, first.beside(t).Options(t, "admin"))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		sessions = append(sessions, s)
	}
	errs := make([]error, racers)
	var group sync.WaitGroup
	for i, s := range sessions {
		group.Go(func() { errs[i] = converge.ClaimCluster(ctx, s, first.Client, converge.RepoView{}) })
	}
	group.Wait()
	there, err := ownership.ReadClaim(ctx, first.Client)
	if err != nil {
		t.Fatal(err)
	}
	won := 0
	for i, err := range errs {
		if err == nil {
			won++
			if there.Fleet != sessions[i].Identity() {
				t.Error("the one that was let through is not the one that the cluster knows")
			}
		} else if !errors.Is(err, ownership.ErrOtherFleet) {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d have won", won)
	}
}

// fluxObjects are a Flux that was set up by somebody else: its kinds, and what it follows.
func (e *existingCluster) followSomething(ctx context.Context, t *testing.T, url, branch, path string) {
	t.Helper()
	for plural, kind := range map[string]string{"gitrepositories": "GitRepository", "kustomizations": "Kustomization",
		"fluxinstances": "FluxInstance"} {
		group := map[string]string{"GitRepository": "source.toolkit.fluxcd.io", "Kustomization": "kustomize.toolkit.fluxcd.io",
			"FluxInstance": "fluxcd.controlplane.io"}[kind]
		e.apply(ctx, t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: `+plural+`.`+group+
			`}, spec: {group: `+group+
			`, scope: Namespaced, names: {plural: `+plural+`, kind: `+kind+
			`}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`)
	}
	e.apply(ctx, t, "{apiVersion: v1, kind: Namespace, metadata: {name: flux-system}}")
	if url == "" {
		return
	}
	e.apply(ctx, t, "{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: flux-system, namespace: flux-system}, "+
		"spec: {url: '"+url+"', interval: 1m, ref: {branch: "+branch+"}}}")
	e.apply(ctx, t, "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: flux-system, namespace: "+
		"flux-system}, spec: {path: ./"+path+
		", interval: 1m, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}, status: {lastAppliedRevision: "+
		"'main@sha1:1111111111111111111111111111111111111111', inventory: {entries: ["+
		"{id: default_theirs__ConfigMap, v: v1}, {id: flux-system_flux-system_source.toolkit.fluxcd.io_GitRepository, v: v1}, {id: "+
		"flux-system_clusters_kustomize.toolkit.fluxcd.io_Kustomization, v: v1}]}}}")
	e.apply(ctx, t, "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: clusters, namespace: flux-system, "+
		"labels: {kustomize.toolkit.fluxcd.io/name: flux-system}}, spec: {path: ./clusters, prune: true, sourceRef: {kind: GitRepository, "+
		"name: flux-system}}, status: {inventory: {entries: ["+
		"{id: default_child__ConfigMap, v: v1}]}}}")
	for _, name := range []string{"theirs", "child"} {
		e.apply(ctx, t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: "+name+"}}")
	}
}

func (e *existingCluster) apply(ctx context.Context, t *testing.T, manifest string) {
	t.Helper()
	if _, err := e.Client.ApplyYAML(ctx, []byte(manifest), kube.ApplyOptions{FieldManager: "test", ForceConflicts: true}); err != nil {
		t.Fatal(err)
	}
}

// A Flux that follows something else is left alone: what it follows, and what would be deleted, is said.
func TestFluxThatFollowsSomethingElse(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	e.followSomething(ctx, t, "", "", "")
	if _, err := e.Take(ctx, t); err != nil {
		t.Fatalf("a Flux that follows nothing: %v", err)
	}
	e.unclaim(ctx, t)
	const path = "providers/docker/v1/mgmt"
	for name, tc := range map[string]struct {
		url, branch, path, other string
		allowed                  bool
	}{
		"what init wants":              {e.Git.URL, "main", path, "", true},
		"the same, without its ending": {strings.TrimSuffix(e.Git.URL, ".git"), "main", path, "", true},
		"another repository":           {"https://git.example.com/theirs.git", "main", path, "", false},
		"another branch":               {e.Git.URL, "production", path, "", false},
		"another path":                 {e.Git.URL, "main", "clusters/prod", "", false},
		"the folder above":             {e.Git.URL, "main", "providers/docker/v1", "", false},
		"the top of the repository":    {e.Git.URL, "main", "", "", false},
		"a sync of another tool beside it": {"", "", "",
			"{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: platform, namespace: flux-system}, spec: {path: " +
				"./, prune: true, sourceRef: {kind: OCIRepository, name: platform}}}", false},
		"a FluxInstance of the operator": {"", "", "",
			"{apiVersion: fluxcd.controlplane.io/v1, kind: FluxInstance, metadata: {name: flux, namespace: flux-system}, spec: {}}", false},
		"an address that a folder could be": {"http://10.0.0.1:4000/fleet.git", "main", path, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.other != "" {
				e.apply(ctx, t, tc.other)
			}
			e.followSomething(ctx, t, tc.url, tc.branch, tc.path)
			_, err := e.Take(ctx, t)
			switch {
			case tc.allowed && err != nil:
				t.Errorf("refused: %v", err)
			case !tc.allowed && (err == nil || diag.Hint(err) == ""):
				t.Errorf("got %v", err)
			case !tc.allowed && tc.url != "" && (!strings.Contains(err.Error(), tc.url) ||
				!strings.Contains(err.Error(), "ConfigMap default/child") || !strings.Contains(diag.Hint(err), "--take-over-flux")):
				t.Errorf("got %v (%s)", err, diag.Hint(err))
			}
			if there, err := ownership.ReadClaim(ctx, e.Client); err != nil || (there != nil) != tc.allowed {
				t.Errorf("claimed: %v, %v", there, err)
			}
			e.unclaim(ctx, t)
			e.forgetFlux(ctx, t)
		})
	}
}

func (e *existingCluster) unclaim(ctx context.Context, t *testing.T) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ownership.ClaimKey.Namespace, Name: ownership.ClaimKey.Name}}
	if err := e.Client.WithWatch.Delete(ctx, object); err != nil && !kube.IsAbsent(err) {
		t.Fatal(err)
	}
	if err := os.RemoveAll(e.Deps.Store.Cluster("mgmt").Dir); err != nil {
		t.Fatal(err)
	}
}

func (e *existingCluster) forgetFlux(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, ref := range []struct{ group, kind string }{{"kustomize.toolkit.fluxcd.io", "Kustomization"},
		{"source.toolkit.fluxcd.io", "GitRepository"}, {"fluxcd.controlplane.io", "FluxInstance"}} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(ref.group + "/v1")
		list.SetKind(ref.kind + "List")
		if err := e.Client.List(ctx, list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if err := e.Client.WithWatch.Delete(ctx, &list.Items[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Taking over deletes nothing: what was applied before is kept, and what works on others stands still.
func TestTakeOverKeepsWhatWasApplied(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	e.followSomething(ctx, t, "https://git.example.com/theirs.git", "main", "clusters/prod")
	s, err := e.Take(ctx, t, func(o *session.Options) { o.TakeOverFlux = true })
	if err != nil {
		t.Fatal(err)
	}
	p := &converge.Pushed{Session: s, Access: &converge.FluxAccess{Session: s,
		Endpoint: &converge.GitEndpoint{URL: e.Git.URL, Display: e.Git.URL}, Home: e.Client}}
	system := flux.NewSystem(e.Client)
	kept, err := p.Follow(ctx, e.Client, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ConfigMap default/child", "ConfigMap default/theirs", "Kustomization flux-system/clusters"}
	if !slices.Equal(kept, want) {
		t.Errorf("kept %q, want %q", kept, want)
	}
	for _, name := range []string{"theirs", "child"} {
		object := &corev1.ConfigMap{}
		if err := e.Client.Get(ctx, kube.Key{Namespace: "default", Name: name}, object); err != nil ||
			object.Annotations["kustomize.toolkit.fluxcd.io/prune"] != "disabled" {
			t.Errorf("%s: %v, %v", name, object.Annotations, err)
		}
	}
	if _, err := system.Resume(ctx); err != nil {
		t.Fatal(err)
	}
	for name, suspended := range map[string]bool{"flux-system": false, "clusters": true} {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion("kustomize.toolkit.fluxcd.io/v1")
		object.SetKind("Kustomization")
		if err := e.Client.Get(ctx, kube.Key{Namespace: "flux-system", Name: name}, object); err != nil {
			t.Fatal(err)
		}
		if got, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend"); got != suspended {
			t.Errorf("%s: suspended %t", name, got)
		}
		if prune, _, _ := unstructured.NestedBool(object.Object, "spec", "prune"); name == "flux-system" && prune {
			t.Error("it prunes from the start")
		}
	}
	now, err := system.Following(ctx)
	if err != nil || now.URL != e.Git.URL {
		t.Errorf("it follows %s, %v", now, err)
	}
	if there, err := ownership.ReadClaim(ctx, e.Client); err != nil || !there.Confirmed {
		t.Errorf("%+v, %v", there, err)
	}
}

// A Cluster that comes while somebody thinks about the question is not deleted with the others, nor with its management cluster.
func TestTeardownLooksAgain(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	e.takeWithCluster(ctx, t)
	target, err := management.Find(e.Deps.Store, "", e.Dir)
	if err != nil {
		t.Fatal(err)
	}
	late := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "late"},
		Spec: clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "TestCluster", Name: "late",
		}},
	}
	_, err = Teardown(ctx, e.Deps, TeardownOptions{Target: target, DeleteClusters: true,
		Confirm: func(*TeardownPlan) error { return e.Client.Create(ctx, late) }})
	if err == nil || !strings.Contains(err.Error(), "team-a/late") {
		t.Errorf("got %v", err)
	}
	for _, name := range []string{"alpha", "late"} {
		found := &clusterv1.Cluster{}
		if err := e.Client.Get(ctx, kube.Key{Namespace: "team-a", Name: name}, found); err != nil || !found.DeletionTimestamp.IsZero() {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(target.Cluster.Path("cluster.json")); err != nil {
		t.Error(err)
	}
}
