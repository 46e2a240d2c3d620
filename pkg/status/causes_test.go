package status

import (
	"strings"
	"testing"
)

// A cluster that comes up has a dozen conditions, and most only wait for another. The table has the causes, and a count of the others.
func TestTableHasCauses(t *testing.T) {
	t.Parallel()
	fault := Trouble{Condition: "InfrastructureReady", Reason: "no quota for instances"}
	waits := Trouble{Condition: "ControlPlaneAvailable", Reason: "Waiting for etcd to report the list of members", Waiting: true}
	for _, test := range []struct {
		name     string
		troubles []Trouble
		want     []string // Condition, then Reason
	}{
		{"a fault and what waits for it", []Trouble{fault, waits, waits}, []string{
			"InfrastructureReady no quota for instances", " 2 more conditions, waiting for another object",
		}},
		{"only waits", []Trouble{waits, waits}, []string{
			"ControlPlaneAvailable Waiting for etcd to report the list of members", " 1 more condition, waiting for another object",
		}},
		{"one that waits", []Trouble{waits}, []string{"ControlPlaneAvailable Waiting for etcd to report the list of members"}},
		{"faults", []Trouble{fault, fault}, []string{
			"InfrastructureReady no quota for instances", "InfrastructureReady no quota for instances",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var r Report
			r.blameCluster(&Fleet{Namespace: "shop", Name: "shop", Troubles: test.troubles})
			var got []string
			for _, p := range r.Problems {
				got = append(got, p.Condition+" "+p.Reason)
			}
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if last := r.Problems[len(r.Problems)-1]; !strings.Contains(last.Hint, "fleetctl why shop/shop") {
				t.Errorf("the last problem has the hint %q", last.Hint)
			}
		})
	}
}
