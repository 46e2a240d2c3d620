package session

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/ownership"
)

// A pivot hands all of a management cluster over, and has the target's Flux follow that one's folder. A management cluster that it has made
// has a folder of its own: it is refused by its name and, where only a kubeconfig tells of it, by what it says of itself.
func TestNoPivotIntoAChild(t *testing.T) {
	child := v1alpha1.ManagementCluster{Name: "eu", Parent: "root", Cloud: "eu"}
	s := &Session{
		Fleet: &v1alpha1.Fleet{Spec: v1alpha1.FleetSpec{ManagementClusters: []v1alpha1.ManagementCluster{{Name: "root"}, child}}},
		Mgmt:  &v1alpha1.ManagementCluster{Name: "root"}, Self: &ownership.Repo{ID: "f", Name: "acme"},
	}
	s.adopt("f")
	for _, to := range []string{"eu", "regions/eu"} {
		err := s.RefuseChild(to)
		if err == nil || !strings.Contains(err.Error(), "providers/eu/v1") ||
			!strings.Contains(diag.Hint(err), "bootstrap --management eu --stand-alone") {
			t.Errorf("to %s: %v (%s)", to, err, diag.Hint(err))
		}
	}
	for _, to := range []string{"", "platform", "eu/platform"} {
		if err := s.RefuseChild(to); err != nil {
			t.Errorf("to %q: %v", to, err)
		}
	}
	claim := &ownership.Claim{Fleet: "f", Name: "acme", Cluster: "eu"}
	const other = "the cluster named for root is already another management cluster of this fleet"
	if err := s.CheckClaim(claim); err == nil || !strings.Contains(err.Error(), other) {
		t.Errorf("a kubeconfig that leads to it: %v", err)
	}
	if other := s.OtherManagement(claim); other != "eu" {
		t.Errorf("another management cluster of the fleet: %q", other)
	}
	if other := s.OtherManagement(&ownership.Claim{Fleet: "g", Cluster: "eu"}); other != "" {
		t.Errorf("of another fleet: %q", other)
	}
	claim.Cluster = "root"
	if err := s.CheckClaim(claim); err != nil {
		t.Errorf("a kubeconfig that leads to root's own: %v", err)
	}
}
