package upgrade

import (
	"testing"

	"github.com/fleetctl/fleetctl/pkg/capi"
)

// Pools follow a control plane that is there; a control plane leaves out no minor version, whatever the files say.
func TestHoldsUpgrade(t *testing.T) {
	const ahead = "it runs v1.36.3 and v1.36.4, and the fleet repo has it at v1.36.4"
	for name, tc := range map[string]struct {
		runs             []string
		nodes            capi.Replicas
		declared, wanted string
		want             string
	}{
		"pools, all there": {[]string{"v1.36.4"}, capi.Replicas{Desired: 3, UpToDate: 3}, "v1.36.4", "v1.36.4", ""},
		"pools, some on the way": {
			[]string{"v1.36.3", "v1.36.4"},
			capi.Replicas{Desired: 3, UpToDate: 1},
			"v1.36.4", "v1.36.4", ahead,
		},
		"pools, an image on the way": {
			[]string{"v1.36.4"},
			capi.Replicas{Desired: 3, UpToDate: 2},
			"v1.36.4", "v1.36.4",
			"2 of its 3 nodes are as the fleet repo says",
		},
		"pools, an image on the way to the only node": {
			[]string{"v1.36.4"},
			capi.Replicas{Desired: 1},
			"v1.36.4", "v1.36.4",
			"its node is not as the fleet repo has it",
		},
		"pools, not begun": {
			[]string{"v1.35.9"},
			capi.Replicas{Desired: 3, UpToDate: 3},
			"v1.36.0", "v1.36.0",
			"it runs v1.35.9, and the fleet repo has it at v1.36.0",
		},
		"pools, it is further":               {[]string{"v1.37.0"}, capi.Replicas{}, "v1.36.4", "v1.36.4", ""},
		"pools, a cloud with minor versions": {[]string{"v1.36"}, capi.Replicas{}, "v1.36.4", "v1.36.4", ""},
		"pools, such a cloud behind": {
			[]string{"1.35"},
			capi.Replicas{},
			"v1.36.4", "v1.36.4",
			"it runs 1.35, and the fleet repo has it at v1.36.4",
		},
		"pools, a cloud with builds":        {[]string{"v1.36.4-gke.100"}, capi.Replicas{}, "v1.36.4", "v1.36.4", ""},
		"pools, nothing is known":           {nil, capi.Replicas{}, "v1.36.4", "v1.36.4", ""},
		"pools, what nobody can read":       {[]string{"latest"}, capi.Replicas{}, "v1.36.4", "v1.36.4", ""},
		"control plane, the next":           {[]string{"v1.36.4"}, capi.Replicas{Desired: 3, UpToDate: 3}, "v1.36.4", "v1.37.0", ""},
		"control plane, a patch on the way": {[]string{"v1.36.3"}, capi.Replicas{Desired: 3, UpToDate: 1}, "v1.36.4", "v1.36.5", ""},
		"control plane, two on the way": {
			[]string{"v1.35.0", "v1.36.0"},
			capi.Replicas{Desired: 3, UpToDate: 1},
			"v1.36.0", "v1.37.0",
			"it runs v1.35.0 and v1.36.0, and the fleet repo has it at v1.36.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &capi.Cluster{ControlPlaneVersions: tc.runs, ControlPlaneReplicas: tc.nodes}
			if got := Holds(cluster, tc.declared, tc.wanted); got != tc.want {
				t.Errorf("got %q", got)
			}
		})
	}
	if got := Holds(nil, "v1.36.3", "v1.36.3"); got != "" {
		t.Errorf("without a cluster: %q", got)
	}
}
