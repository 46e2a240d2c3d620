package transfer

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/progress"
)

// Nobody is warned that a cluster would not stay suspended if Git says that it is paused. What else is suspended is told.
func TestTellsOnlyOfWhatTheRepoDoesNotSuspend(t *testing.T) {
	transfer := transferOf(t, &heard{})
	transfer.release = kube.Key{Namespace: "shop", Name: "shop"}
	ref := func(kind, name string) kube.Ref {
		return kube.Ref{GroupVersionKind: schema.GroupVersionKind{Kind: kind}, Key: kube.Key{Namespace: "shop", Name: name}}
	}
	all := []kube.Ref{ref("HelmRelease", "shop"), ref("HelmRelease", "addon"), ref("Kustomization", "shop")}
	for _, paused := range []bool{false, true, false} {
		if _, err := change.Make(t.Context(), change.Options{
			Dir: transfer.opts.Change.Dir, Edit: func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) { return r.Pause("shop", paused) },
		}); err != nil {
			t.Fatal(err)
		}
		want := all
		if paused {
			want = all[1:]
		}
		if got, err := transfer.unknownToRepo(all); err != nil || !slices.Equal(got, want) {
			t.Errorf("paused: %t: %v, %v; want %v", paused, got, err, want)
		}
	}
}

// What is suspended in a file of the cluster moves along with it, and nobody is warned of it.
func TestTellsNotOfWhatMovesAlong(t *testing.T) {
	target, _ := clientOf(t)
	x := transferOf(t, &heard{Reporter: progress.Discard})
	x.release = kube.Key{Namespace: "shop", Name: "shop"}
	folder := filepath.Join(x.opts.Change.Dir, "providers", "first", "v1", "clusters", "prod", "shop")
	addon := func(name, suspend string) string {
		return "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: " + name + ", namespace: shop}, " +
			"spec: {interval: 1h, suspend: " + suspend + ", chart: {spec: {chart: a, sourceRef: {kind: HelmRepository, name: a}}}}}\n"
	}
	for name, content := range map[string]string{
		"rests.yaml": addon("rests", "true"), "works.yaml": addon("works", "false"),
		"charts.yaml": "{apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, metadata: {name: a, namespace: shop}, " +
			"spec: {url: 'https://127.0.0.1:1/charts'}}\n",
		"kustomization.yaml": "resources: [cluster.yaml, charts.yaml, rests.yaml, works.yaml]\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.rehearse(t.Context(), target, nil); err != nil {
		t.Fatal(err)
	}
	ref := func(name string) kube.Ref {
		return kube.Ref{
			GroupVersionKind: schema.GroupVersionKind{Group: "helm.toolkit.fluxcd.io", Version: "v2beta2", Kind: "HelmRelease"},
			Key:              kube.Key{Namespace: "shop", Name: name},
		}
	}
	got, err := x.unknownToRepo([]kube.Ref{ref("rests"), ref("shop"), ref("works")})
	if want := []kube.Ref{ref("shop"), ref("works")}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}
