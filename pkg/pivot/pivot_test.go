package pivot

import (
	"slices"
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
	restore := NewRestoration(converge.NewRun(s)).steps()
	if err := steps.Check(restore); err != nil {
		t.Error(err)
	}
	// The fleet repo gets the name of the cluster after the take-over, so that an abort leaves no name, and before Flux is connected.
	for after, before := range map[string]string{converge.StepName: stepRestore, converge.StepConnect: converge.StepName} {
		if !slices.ContainsFunc(restore, func(s steps.Step) bool { return s.Name == after && slices.Contains(s.Needs, before) }) {
			t.Errorf("%q does not wait for %q", after, before)
		}
	}
	// If the source is gone, the steps use the target's client instead of the source's.
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
