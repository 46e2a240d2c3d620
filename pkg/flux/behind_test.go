package flux

import (
	"testing"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Objects that are Ready at another revision than their source are not Ready, and each says what to do.
func TestBehind(t *testing.T) {
	var (
		dev   = kube.Key{Namespace: Namespace, Name: "clusters-dev"}
		demo  = kube.Key{Namespace: "demo", Name: "demo"}
		chart = kube.Key{Namespace: Namespace, Name: "demo-demo"}
	)
	newRev := "main@sha1:" + newer
	for _, tt := range []struct {
		name         string
		change       func(t *testing.T, w world)
		object       kube.Ref
		reason, hint string
	}{
		{
			name: "a Kustomization", object: kube.Ref{GroupVersionKind: kustomizationKind, Key: dev},
			change: func(t *testing.T, w world) {
				set(t, w[gitRepositoryKind][systemKey], newRev, "status", "artifact", "revision")
			},
			reason: "it has not applied main@sha1:222222222222 yet", hint: waitAMoment,
		},
		{
			name: "a Kustomization with the wrong record", object: kube.Ref{GroupVersionKind: kustomizationKind, Key: dev},
			change: func(t *testing.T, w world) {
				set(t, w[kustomizationKind][dev], "main@sha1:"+applied, "status", "lastAttemptedRevision")
				set(t, w[kustomizationKind][dev], newRev, "status", "lastAppliedRevision")
			},
			reason: "Flux has applied main@sha1:111111111111, but has recorded main@sha1:222222222222: what depends on it waits",
			hint: "`kubectl -n flux-system annotate --overwrite kustomization clusters-dev reconcile.fluxcd.io/requestedAt=$(date +%s)` makes " +
				"Flux look again",
		},
		{
			name: "a release whose chart is old", object: kube.Ref{GroupVersionKind: helmReleaseKind, Key: demo},
			change: func(t *testing.T, w world) {
				set(t, w[gitRepositoryKind][systemKey], newRev, "status", "artifact", "revision")
			},
			reason: "its chart does not come from main@sha1:222222222222 yet", hint: waitAMoment,
		},
		{
			name: "a release that has not installed its chart", object: kube.Ref{GroupVersionKind: helmReleaseKind, Key: demo},
			change: func(t *testing.T, w world) {
				set(t, w[helmChartKind][chart], "0.1.0+222222222222", "status", "artifact", "revision")
			},
			reason: "its chart 0.1.0+222222222222 is not installed yet", hint: waitAMoment,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := testWorld(t)
			obj := w[tt.object.GroupVersionKind][tt.object.Key]
			if before := w.describe(tt.object, obj); !before.Ready || before.Behind != "" {
				t.Fatalf("before: %+v", before)
			}
			tt.change(t, w)
			got := w.describe(tt.object, obj)
			if got.Ready || got.Reason != tt.reason || got.Behind != tt.hint {
				t.Errorf("got %+v", got)
			}
			set(t, obj, true, "spec", "suspend")
			if got := w.describe(tt.object, obj); !got.Ready || got.Behind != "" {
				t.Errorf("suspended: %+v", got)
			}
		})
	}
}
