package flux

import (
	"testing"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// One environment is judged by what it applied, whatever becomes of the others.
func TestBelow(t *testing.T) {
	demo := kube.Key{Namespace: "demo", Name: "demo"}
	w := testWorld(t)
	if got := w.applied("clusters-dev"); commitOf(got) != applied {
		t.Errorf("applied %q", got)
	}
	if missing := w.below("clusters-dev", applied); len(missing) != 0 {
		t.Errorf("healthy: %v", missing)
	}
	ready(t, w[kustomizationKind][systemKey], "False", "BuildFailed", "somebody else's")
	if missing := w.below("clusters-dev", applied); len(missing) != 0 {
		t.Errorf("another one fails: %v", missing)
	}
	for name, tc := range map[string]struct{ environment, commit, want string }{
		"another commit": {"clusters-dev", newer, "it has applied 111111111111, not 222222222222"},
		"not there":      {"clusters-prod", applied, "it does not exist"},
	} {
		if missing := w.below(tc.environment, tc.commit); len(missing) != 1 || missing[0].Reason != tc.want {
			t.Errorf("%s: %v", name, missing)
		}
	}
	ready(t, w[helmReleaseKind][demo], "False", "InstallFailed", "no such chart")
	if missing := w.below("clusters-dev", applied); len(missing) != 1 || missing[0].Key != demo {
		t.Errorf("a release fails: %v", missing)
	}
}
