package lifecycle

import (
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/pivot"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

func TestInitStepsFitTogether(t *testing.T) {
	s := &session.Session{Fleet: &v1alpha1.Fleet{}, Mgmt: &v1alpha1.ManagementCluster{}}
	for _, s.NewFleet = range []bool{true, false} {
		if err := steps.Check(converge.NewRun(s).Steps()); err != nil {
			t.Error(err)
		}
	}
	o := BootstrapOptions{PivotTo: "x"}
	if err := steps.Check(newBootstrap(s, o).steps()); err != nil {
		t.Error(err)
	}
	s.Fleet.Spec.Snapshots.To = "/mnt/snapshots"
	if err := steps.Check(newBootstrap(s, o).steps()); err != nil {
		t.Error(err)
	}
	b := newBootstrap(s, o)
	b.restore = pivot.NewRestoration(b.init)
	if err := steps.Check(b.steps()); err != nil {
		t.Error(err)
	}
	going := newBootstrap(s, o)
	going.move.Under = &handover.Journal{}
	if err := steps.Check(going.steps()); err != nil {
		t.Error(err)
	}
	if err := steps.Check((&teardown{}).steps()); err != nil {
		t.Error(err)
	}
}
