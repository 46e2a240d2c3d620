package lifecycle

import (
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/pivot"
	"github.com/fleetctl/fleetctl/pkg/repoaccess"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/state"
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

// A script gives the deploy key of the result to the API of a forge, so it is one line without an end of line. Without a deploy key it is
// left out.
func TestResultHasTheDeployKeyAsOneLine(t *testing.T) {
	key, err := gitrepo.GenerateDeployKey("flux@mgmt.acme")
	if err != nil {
		t.Fatal(err)
	}
	for public, want := range map[string]string{key.Public: key.Public[:len(key.Public)-1], "": ""} {
		s := &session.Session{
			Fleet: &v1alpha1.Fleet{}, Mgmt: &v1alpha1.ManagementCluster{Name: "mgmt"}, Opts: session.Options{Dir: t.TempDir()},
			Cluster: state.Cluster{Name: "mgmt", Dir: t.TempDir()},
		}
		r := converge.NewRun(s)
		r.Endpoint.Tell(&repoaccess.Endpoint{Credentials: flux.SourceCredentials{IdentityPub: []byte(public)}})
		r.Pushed.Tell(&following.Pushed{})
		r.Kept.Tell(nil)
		r.Installed.Tell(&converge.Installed{})
		if got := result(r).DeployKey; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
