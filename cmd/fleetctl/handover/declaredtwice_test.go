//go:build e2e

package handover

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	fleettransfer "github.com/fleetctl/fleetctl/pkg/transfer"
)

// cluster makes a paused Cluster without machines, with the labels of the release early if ofRelease is true.
func (s *seeder) cluster(t *testing.T, namespace, name string, ofRelease bool) {
	t.Helper()
	s.namespace(t.Context(), t, namespace)
	metadata := map[string]any{}
	if ofRelease {
		metadata["labels"] = map[string]any{"helm.toolkit.fluxcd.io/name": "early", "helm.toolkit.fluxcd.io/namespace": "early"}
	}
	s.create(t.Context(), t, object("cluster.x-k8s.io/v1beta2", "Cluster", namespace, name, map[string]any{
		"metadata": metadata,
		"spec": map[string]any{"paused": true, "infrastructureRef": map[string]any{
			"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DockerCluster", "name": name,
		}},
	}))
}

// dryRun asks what the transfer of the Cluster early to eu would do.
func (f *twoInOne) dryRun(t *testing.T) (*fleettransfer.Result, error) {
	t.Helper()
	return fleettransfer.Run(t.Context(), f.deps(), fleettransfer.Options{
		Cluster: "prod/early", To: "eu", DryRun: true,
		Change: change.Options{Dir: f.Dir, Git: change.Credentials{Token: f.Token}, Push: true, CacheDir: f.Cache},
	})
}

// TestTransferOfWhatIsDeclaredTwice asks for the transfer of a Cluster that Flux would make again at the source, or with which it would
// make another one at the target. Each is refused before anything changes. A Cluster of the same name in another namespace is no obstacle.
func TestTransferOfWhatIsDeclaredTwice(t *testing.T) {
	ctx := t.Context()
	w := newReleased(ctx, t)
	for name, c := range map[string]struct {
		seed     func(t *testing.T, source, target *seeder)
		says     []string
		hint     string
		possible bool
	}{
		"its release makes another one": {
			seed: func(t *testing.T, source, _ *seeder) { source.cluster(t, "early", "late", true) },
			says: []string{"HelmRelease early/early", "early/late"}, hint: "a HelmRelease of its own",
		},
		"a Kustomization applies it too": {
			seed: func(t *testing.T, source, _ *seeder) {
				source.create(ctx, t, object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", "by-hand", map[string]any{
					"spec": map[string]any{
						"interval": "10m", "prune": false, "sourceRef": map[string]any{"kind": "GitRepository", "name": "flux-system"},
					},
					"status": map[string]any{"inventory": map[string]any{"entries": []any{
						map[string]any{"id": "early_early_cluster.x-k8s.io_Cluster", "v": "v1beta2"},
					}}},
				}))
			},
			says: []string{"Kustomization flux-system/by-hand", "early/early"}, hint: "remove the manifest",
		},
		"the source has another one of its name": {
			seed:     func(t *testing.T, source, _ *seeder) { source.cluster(t, "other", "early", false) },
			possible: true,
		},
		"the target has another one of its name": {
			seed:     func(t *testing.T, _, target *seeder) { target.cluster(t, "other", "early", false) },
			possible: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.restore(ctx, t, w.beginning)
			f := w.known(ctx, t)
			c.seed(t, newSeeder(w.source), newSeeder(w.target))
			r, err := f.dryRun(t)
			if c.possible {
				if err != nil || !slices.Equal(r.Plan.Clusters, []string{"early/early"}) {
					t.Errorf("%+v, %v: %s", r, err, diag.Hint(err))
				}
				return
			}
			if err == nil {
				t.Fatalf("it goes: %+v", r)
			}
			for _, words := range c.says {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("it does not say %q: %v", words, err)
				}
			}
			if !strings.Contains(diag.Hint(err), c.hint) {
				t.Errorf("the hint is %q", diag.Hint(err))
			}
		})
	}
	t.Run("only another one of its name is left, at the target", func(t *testing.T) {
		w.restore(ctx, t, w.beginning)
		f := w.known(ctx, t)
		newSeeder(w.target).cluster(t, "other", "early", false)
		gone := object("cluster.x-k8s.io/v1beta2", "Cluster", "early", "early", map[string]any{})
		source := clientOf(t, w.source)
		free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		if err := source.WithWatch.Patch(ctx, gone, free); err != nil {
			t.Fatal(err)
		}
		if err := source.WithWatch.Delete(ctx, gone); err != nil && !kube.IsAbsent(err) {
			t.Fatal(err)
		}
		r, err := f.dryRun(t)
		if err == nil || !strings.Contains(err.Error(), "neither root nor eu has a Cluster early") {
			t.Errorf("%+v, %v", r, err)
		}
	})
}
