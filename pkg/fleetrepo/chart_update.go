package fleetrepo

import (
	"bytes"
	"maps"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/version"
)

// ChartState says how a chart of the repo stands to the one that this fleetctl brings.
type ChartState string

// The states of a chart.
const (
	// ChartCurrent has all that is new; its team may have changed it.
	ChartCurrent ChartState = "current"
	// ChartBehind lacks something that is new.
	ChartBehind ChartState = "behind"
	// ChartOwn is the team's own: fleetctl brings none of that name, or fleet.lock does not know what it was made of.
	ChartOwn ChartState = "own"
)

// Chart is a chart of the fleet repo.
type Chart struct {
	Name string `json:"name"`
	// Fleetctl is the version of fleetctl that brought it.
	Fleetctl string     `json:"fleetctl,omitempty"`
	State    ChartState `json:"state"`
	// Changed says that the team has changed it since.
	Changed bool `json:"changed"`
}

// Charts lists the charts of the repo, by name. Errors: a fleet.lock or a chart that cannot be read.
func (r *Repo) Charts() ([]Chart, error) {
	lock, err := r.readLock()
	if err != nil {
		return nil, err
	}
	names, err := r.folders(scaffold.ChartsDir)
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
		c := Chart{Name: name, State: ChartOwn}
		if locked, brought := lockedChart(lock, name); brought != nil && locked != nil {
			c.Fleetctl, c.State, c.Changed = locked.Fleetctl, ChartBehind, scaffold.Digest(have) != locked.SHA256
			if scaffold.Digest(brought) == locked.SHA256 {
				c.State = ChartCurrent
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// lockedChart is what fleet.lock says of a chart that fleetctl has brought, and the files that this fleetctl brings; nil where there is none.
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

// Prefer says whose version of a file counts where the team and fleetctl have changed the same lines of it.
type Prefer string

// Whose version counts. PreferNobody makes it an error.
const (
	PreferNobody   Prefer = ""
	PreferTeam     Prefer = "team"
	PreferFleetctl Prefer = "fleetctl"
)

// ChartHistory looks a chart up in the history of the repo: its files when they had that digest, nil where they never had.
type ChartHistory func(name, sha256 string) ([]manifest.File, error)

// UpdateCharts brings into charts what is new of them in this fleetctl; without names, into all that fleetctl has brought. What the team has
// changed stays: the three are merged line by line. Errors: an unknown chart, one of the team's own, and lines that both have changed,
// all of them at once, each with its file.
func (r *Repo) UpdateCharts(names []string, prefer Prefer, history ChartHistory) (*Edit, error) {
	charts, err := r.Charts()
	if err != nil {
		return nil, err
	}
	chosen, err := chooseCharts(charts, names)
	if err != nil {
		return nil, err
	}
	lock, err := r.readLock()
	if err != nil {
		return nil, err
	}
	e := &Edit{Summary: "Update the charts"}
	chosen = slices.DeleteFunc(chosen, func(c Chart) bool { return c.State != ChartBehind })
	if len(chosen) == 0 {
		return e, nil
	}
	if len(chosen) == 1 {
		e.Summary = "Update the chart " + chosen[0].Name
	}
	var conflicts diag.Findings
	for _, c := range chosen {
		locked, brought := lockedChart(lock, c.Name)
		found, err := r.updateChart(e, locked, brought, prefer, history)
		if err != nil {
			return nil, err
		}
		conflicts = append(conflicts, found...)
		e.Charts = append(e.Charts, c.Name)
		locked.Fleetctl, locked.SHA256 = version.Get().Version, scaffold.Digest(brought)
	}
	if err := conflicts.Err(); err != nil {
		return nil, err
	}
	if len(e.Changes.Files()) > 0 {
		e.Notes = append(e.Notes, "`fleetctl diff` says what it does to the clusters.")
	}
	return e, r.writeLock(e, lock)
}

// chooseCharts are those of names, or all that fleetctl has brought.
func chooseCharts(charts []Chart, names []string) ([]Chart, error) {
	if len(names) == 0 {
		return slices.DeleteFunc(slices.Clone(charts), func(c Chart) bool { return c.State == ChartOwn }), nil
	}
	known := make([]string, 0, len(charts))
	for _, c := range charts {
		known = append(known, c.Name)
	}
	var chosen []Chart
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			return nil, unknown("chart", name, known, "`fleetctl cluster add` brings the chart of its flavour along")
		}
		if charts[i].State == ChartOwn {
			return nil, diag.Errorf("change it in an editor; where it came from fleetctl, `fleetctl lock` has to know it before the team changes it",
				"the chart %s is the team's own", name)
		}
		chosen = append(chosen, charts[i])
	}
	return chosen, nil
}

// updateChart adds to the edit what a chart lacks. It returns the conflicts.
func (r *Repo) updateChart(e *Edit, locked *v1alpha1.LockedChart, brought []manifest.File, prefer Prefer, history ChartHistory) (diag.Findings, error) {
	have, err := r.chartFiles(locked.Name)
	if err != nil {
		return nil, err
	}
	base := have
	if scaffold.Digest(have) != locked.SHA256 {
		if base, err = history(locked.Name, locked.SHA256); err != nil {
			return nil, err
		}
		if base == nil {
			return nil, diag.Errorf("fetch the whole history (git fetch --unshallow)",
				"update the chart %s: it was changed, and no commit here has it as fleetctl %s brought it", locked.Name, locked.Fleetctl)
		}
	}
	before, ours, theirs := byPath(base), byPath(have), byPath(brought)
	names := sortedSet(slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(ours)), slices.Collect(maps.Keys(theirs))))
	var conflicts diag.Findings
	for _, name := range names {
		merged, ok := merge(before[name], ours[name], theirs[name], prefer)
		switch {
		case !ok:
			conflicts = append(conflicts, diag.Finding{
				Severity: diag.SeverityError, Rule: "chart-conflict", File: name, Summary: "the team and fleetctl have changed the same lines",
				Hint: "--prefer team keeps the file as it is, --prefer fleetctl takes the new one; with --dry-run it shows what that changes",
			})
		case merged == nil && ours[name] != nil:
			e.Changes.Delete(name)
		case merged != nil && !bytes.Equal(merged, ours[name]):
			e.Changes.Write(manifest.File{Path: name, Content: merged})
		}
	}
	return conflicts, nil
}

func byPath(files []manifest.File) map[string][]byte {
	all := make(map[string][]byte, len(files))
	for _, f := range files {
		all[f.Path] = append([]byte{}, f.Content...) // an empty file is a file
	}
	return all
}

// merge is a file with the changes of both sides since base; nil stands for no file. It is not ok where both have changed the same lines and
// nobody is preferred.
func merge(base, team, fleetctl []byte, prefer Prefer) (merged []byte, ok bool) {
	if merged, ok := manifest.Merge(base, team, fleetctl); ok {
		return merged, true
	}
	switch prefer {
	case PreferTeam:
		return team, true
	case PreferFleetctl:
		return fleetctl, true
	case PreferNobody:
	}
	return nil, false
}
