package upgrade

import (
	"errors"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/capi/releases"
)

// The parts of Cluster API are released together, and nobody tests others side by side.
func TestNoteSkew(t *testing.T) {
	part := func(name string, of releases.ProviderType, installed, declared string) Component {
		return Component{Name: name, Type: string(of), Installed: installed, Declared: declared}
	}
	for name, tc := range map[string]struct {
		core, other Component
		want        string
	}{
		"the same":        {part("cluster-api", releases.Core, "", "v1.14.2"), part("kubeadm", releases.Bootstrap, "", "v1.14.2"), ""},
		"another patch":   {part("cluster-api", releases.Core, "", "v1.14.2"), part("kubeadm", releases.Bootstrap, "", "v1.14.0"), ""},
		"upgraded before": {part("cluster-api", releases.Core, "v1.13.0", "v1.14.2"), part("kubeadm", releases.ControlPlane, "v1.14.2", ""), ""},
		"another minor": {
			part("cluster-api", releases.Core, "", "v1.14.2"), part("kubeadm", releases.ControlPlane, "v1.13.0", ""),
			"v1.13.0 beside Cluster API v1.14.2 is a combination that nobody tests: give both the same version",
		},
		"no part of it": {part("cluster-api", releases.Core, "", "v1.14.2"), part("aws", releases.Infrastructure, "", "v2.9.0"), ""},
		"not known":     {part("cluster-api", releases.Core, "", ""), part("kubeadm", releases.Bootstrap, "", "v1.14.2"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := &planner{plan: &Plan{Components: []Component{tc.other, tc.core}}}
			p.noteSkew()
			if got := p.plan.Components[0].Note; got != tc.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

// Whoever asks why a plan is not whole gets the same answer, however often.
func TestPlanSaysWhatItCouldNotLookUp(t *testing.T) {
	p := &Plan{unread: []string{"kubeadm", "docker", "kubeadm"}, unreadErr: errors.New("no network")}
	const want = "find out the releases of docker, kubeadm: no network"
	for range 2 {
		if got := p.Err().Error(); got != want {
			t.Errorf("got %q", got)
		}
	}
}
