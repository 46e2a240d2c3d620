package pivot

import (
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

func TestStepsFitTogether(t *testing.T) {
	s := &session.Session{Fleet: &v1alpha1.Fleet{}, Mgmt: &v1alpha1.ManagementCluster{}}
	s.Fleet.Spec.Snapshots.To = "/mnt/snapshots"
	if err := steps.Check(NewRestoration(converge.NewRun(s)).steps()); err != nil {
		t.Error(err)
	}
	// Where the source is gone, the target's client stands for its.
	p := NewMove(converge.NewRun(s), "x")
	p.Gone, p.Under = true, &handover.Journal{}
	if err := steps.Check(append(p.StepsGoingOn(), p.Steps(converge.StepPush)...)); err == nil {
		t.Error("nobody makes the client, and that is not said")
	}
	p.init.Client.Tell(&kube.Client{})
	if err := steps.Check(append(p.StepsGoingOn(), p.Steps(converge.StepPush)...)); err != nil {
		t.Error(err)
	}
}
