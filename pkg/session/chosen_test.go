package session

import (
	"errors"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Who gives a name that is none is told those of the standbys, too.
func TestChosenStandby(t *testing.T) {
	fleet := &v1alpha1.Fleet{Spec: v1alpha1.FleetSpec{
		ManagementClusters: []v1alpha1.ManagementCluster{{Name: "platform"}}, Standbys: []v1alpha1.Standby{{Name: "spare", Of: "platform"}},
	}}
	if _, of, err := chosen(fleet, "spare"); err != nil || of != "platform" {
		t.Errorf("spare is of %q, %v", of, err)
	}
	for name, hint := range map[string]string{
		"sparr": "did you mean spare?", "platfor": "did you mean platform?",
		"nobody": "there are: platform, spare",
	} {
		_, _, err := chosen(fleet, name)
		if !errors.Is(err, v1alpha1.ErrNoManagementCluster) || diag.Code(err) != diag.ExitUsage || !strings.Contains(diag.Hint(err), hint) {
			t.Errorf("%s: %v, hint %q", name, err, diag.Hint(err))
		}
	}
}
