package cmd

import (
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/status"
)

// What --watch tells reports apart by: what they say, not where in memory they say it.
func TestFingerprint(t *testing.T) {
	report := func(change func(*status.Report)) string {
		served := true
		r := &status.Report{
			Time: time.Now(), Ready: true, Git: status.Git{Served: &served},
			Clusters: []status.Fleet{{Name: "dev", Flux: &status.WorkloadFlux{Mode: "own", Ready: true}}},
		}
		change(r)
		show, err := fingerprint(r)
		if err != nil {
			t.Fatal(err)
		}
		return show
	}
	still := report(func(*status.Report) {})
	for name, same := range map[string]func(*status.Report){
		"a second look": func(*status.Report) {},
		"later":         func(r *status.Report) { r.Time = r.Time.Add(time.Hour) },
	} {
		if report(same) != still {
			t.Errorf("%s: it is printed again", name)
		}
	}
	for name, changed := range map[string]func(*status.Report){
		"not served any more":  func(r *status.Report) { *r.Git.Served = false },
		"not said":             func(r *status.Report) { r.Git.Served = nil },
		"Flux there not Ready": func(r *status.Report) { r.Clusters[0].Flux.Ready = false },
		"a machine":            func(r *status.Report) { r.Clusters[0].Machines = []status.Machine{{Name: "m"}} },
	} {
		if report(changed) == still {
			t.Errorf("%s: it is not printed", name)
		}
	}
}
