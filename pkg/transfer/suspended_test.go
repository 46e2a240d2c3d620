package transfer

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/kube"
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
