package lifecycle

import (
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

func TestInitStepsFitTogether(t *testing.T) {
	s := &session{fleet: &v1alpha1.Fleet{}}
	if err := steps.Check(s.initSteps()); err != nil {
		t.Error(err)
	}
	b := &bootstrap{session: s, opts: BootstrapOptions{PivotTo: "x"}, move: &pivot{session: s}}
	if err := steps.Check(b.steps()); err != nil {
		t.Error(err)
	}
	s.fleet.Spec.Snapshots.To = "/mnt/snapshots"
	r := &restore{session: s}
	if err := steps.Check(r.steps()); err != nil {
		t.Error(err)
	}
	b.restore = r
	if err := steps.Check(b.steps()); err != nil {
		t.Error(err)
	}
	if err := steps.Check((&teardown{}).steps()); err != nil {
		t.Error(err)
	}
}
