package fleetrepo

import (
	"fmt"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo/internal/charts"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/version"
)

// The states of a chart in UpdateCharts and Charts. The package charts explains each.
type (
	// Chart is a chart of the fleet repo.
	Chart = charts.Chart
	// ChartState compares a chart of the repo with this fleetctl's chart.
	ChartState = charts.State
	// Prefer says whose lines to take if the team and fleetctl have changed the same lines.
	Prefer = charts.Prefer
)

// The states of a chart, and the choices of Prefer.
const (
	ChartCurrent = charts.Current
	ChartBehind  = charts.Behind
	ChartAhead   = charts.Ahead
	ChartOwn     = charts.Own

	PreferNobody   = charts.PreferNobody
	PreferTeam     = charts.PreferTeam
	PreferFleetctl = charts.PreferFleetctl
)

// Charts lists the charts of the repo, by name. Errors: a fleet.lock or a chart that cannot be read.
func (r *Repo) Charts() ([]Chart, error) {
	lock, err := r.readLock()
	if err != nil {
		return nil, err
	}
	names, err := r.folders(layout.ChartsDir)
	if err != nil {
		return nil, err
	}
	all := make([]Chart, 0, len(names))
	for _, name := range names {
		have, err := r.chartFiles(name)
		if err != nil {
			return nil, err
		}
		if len(have) == 0 {
			continue
		}
		locked, brought := lockedChart(lock, name)
		all = append(all, charts.Compare(name, have, locked, brought))
	}
	return all, nil
}

// lockedChart returns the record in fleet.lock of a chart from fleetctl, and the files of this fleetctl's chart. Each is nil if there is
// none.
func lockedChart(lock *v1alpha1.Lock, name string) (*v1alpha1.LockedChart, []manifest.File) {
	brought, err := scaffold.ChartFiles(name)
	if err != nil {
		return nil, nil
	}
	i := slices.IndexFunc(lock.Charts, func(c v1alpha1.LockedChart) bool { return c.Name == name && c.Fleetctl != "" })
	if i < 0 {
		return nil, brought
	}
	return &lock.Charts[i], brought
}

// ChartHistory looks a chart up in the history of the repo. It returns the chart's files at the time when they had that
// digest; nil if they never had it.
type ChartHistory func(name, sha256 string) ([]manifest.File, error)

// UpdateCharts updates charts to the versions of this fleetctl: the named charts, or without names all charts that
// fleetctl wrote. The team's changes stay: the three versions are merged line by line. A chart without a record in
// fleet.lock is merged only if it is named. The base of that merge is this fleetctl's chart if the Git history has it;
// otherwise the merge has no base. Errors: an unknown chart, a chart that fleetctl does not bring, and all lines that
// both sides have changed, each with its file and line.
func (r *Repo) UpdateCharts(names []string, prefer Prefer, history ChartHistory) (*Edit, error) {
	all, err := r.Charts()
	if err != nil {
		return nil, err
	}
	lock, err := r.readLock()
	if err != nil {
		return nil, err
	}
	chosen, err := chooseCharts(all, names)
	if err != nil {
		return nil, err
	}
	e := &Edit{Summary: "Update the charts"}
	var conflicts diag.Findings
	var updated []string
	for _, c := range chosen {
		locked, brought := lockedChart(lock, c.Name)
		switch {
		case c.State == ChartOwn && len(names) == 0:
			if brought != nil {
				e.LeftAlone = append(e.LeftAlone, fmt.Sprintf(
					"The chart %s is left alone: fleet.lock does not say what of it came from fleetctl. `fleetctl chart update %s` compares it with "+
						"what this fleetctl brings.", c.Name, c.Name))
			}
			continue
		case c.State == ChartAhead:
			e.LeftAlone = append(e.LeftAlone, fmt.Sprintf("The chart %s is left alone: fleetctl %s brought it, and this is %s.", c.Name, c.Fleetctl,
				version.Get().Version))
			continue
		case c.State == ChartCurrent && (locked != nil || !r.exists(v1alpha1.LockFileName)): // init writes the first lock
			continue
		}
		found, err := r.updateChart(e, c.Name, locked, brought, prefer, history)
		if err != nil {
			return nil, err
		}
		conflicts = append(conflicts, found...)
		updated = append(updated, c.Name)
		lockChart(lock, c.Name, brought)
	}
	if err := conflicts.Err(); err != nil {
		return nil, err
	}
	if len(updated) == 0 {
		return e, nil
	}
	if len(updated) == 1 {
		e.Summary = "Update the chart " + updated[0]
	}
	e.Checks = append(e.Checks, KeepsClusters{updated})
	if len(e.Changes.Files()) > 0 {
		e.Notes = append(e.Notes, "`fleetctl diff` tells what the change does to the clusters.")
	}
	return e, r.writeLock(e, lock)
}

// lockChart records in the lock that this fleetctl wrote a chart with these files.
func lockChart(lock *v1alpha1.Lock, name string, files []manifest.File) {
	lock.Charts = slices.DeleteFunc(slices.Clone(lock.Charts), func(c v1alpha1.LockedChart) bool { return c.Name == name })
	lock.Charts = append(lock.Charts, v1alpha1.LockedChart{Name: name, Fleetctl: version.Get().Version, SHA256: scaffold.Digest(files)})
}

// lockCharts records charts of fleetctl in fleet.lock. In a repo without fleet.lock, init writes it later, with these
// charts.
func (r *Repo) lockCharts(e *Edit, brought map[string][]manifest.File) error {
	if len(brought) == 0 || !r.exists(v1alpha1.LockFileName) {
		return nil
	}
	lock, err := r.readLock()
	if err != nil {
		return err
	}
	for name, files := range brought {
		lockChart(lock, name, files)
	}
	return r.writeLock(e, lock)
}

// chooseCharts returns the named charts, or all charts without names.
func chooseCharts(all []Chart, names []string) ([]Chart, error) {
	if len(names) == 0 {
		return all, nil
	}
	known := make([]string, 0, len(all))
	for _, c := range all {
		known = append(known, c.Name)
	}
	var chosen []Chart
	for _, name := range sortedSet(names) {
		i := slices.Index(known, name)
		if i < 0 {
			return nil, diag.Unknown("chart", name, known, "`fleetctl cluster add` brings the chart of its flavour along")
		}
		if _, err := scaffold.ChartFiles(name); err != nil {
			return nil, diag.Errorf("change it in an editor", "the chart %s is the team's own: fleetctl brings none of that name", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
