package fleetrepo

import (
	"path"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo/internal/charts"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// updateChart adds the new parts of a chart to the edit. It returns the conflicts.
func (r *Repo) updateChart(
	e *Edit,
	name string,
	locked *v1alpha1.LockedChart,
	brought []manifest.File,
	prefer Prefer,
	history ChartHistory,
) (diag.Findings, error) {
	have, err := r.chartFiles(name)
	if err != nil {
		return nil, err
	}
	base, err := r.chartBase(name, have, locked, brought, history)
	if err != nil {
		return nil, err
	}
	merged, conflicts := charts.Merge(base, have, brought, prefer)
	after := charts.ByPath(merged)
	r.writeText(&e.Changes, merged...)
	for _, f := range have {
		if after[f.Path] == nil {
			e.Changes.Delete(f.Path)
		}
	}
	return conflicts, r.keepBrought(e, name, brought, scaffold.Digest(merged) != scaffold.Digest(brought))
}

// broughtDir has a copy of each chart as fleetctl brought it, if an update found changes of the team in the chart. No commit has that copy.
const broughtDir = layout.ChartsDir + "/.brought"

// keepBrought writes these files to the chart's folder below broughtDir, or removes the folder if it is not needed.
func (r *Repo) keepBrought(e *Edit, name string, brought []manifest.File, needed bool) error {
	kept, err := r.keptChart(name)
	if err != nil {
		return err
	}
	inKept := func(file string) string { return broughtDir + strings.TrimPrefix(file, layout.ChartsDir) }
	wanted := map[string][]byte{}
	if needed {
		wanted = charts.ByPath(brought)
	}
	for file, content := range wanted {
		r.writeText(&e.Changes, manifest.File{Path: inKept(file), Content: content})
	}
	for _, f := range kept {
		if wanted[f.Path] == nil {
			e.Changes.Delete(inKept(f.Path))
		}
	}
	return nil
}

// keptChart returns the files of a chart below broughtDir, with their paths in the chart itself.
func (r *Repo) keptChart(name string) ([]manifest.File, error) {
	files, err := r.filesIn(path.Join(broughtDir, name))
	for i := range files {
		files[i].Path = layout.ChartsDir + strings.TrimPrefix(files[i].Path, broughtDir)
	}
	return files, err
}

// chartBase returns the files of fleetctl's chart before the team's changes, nil if they are not known.
func (r *Repo) chartBase(
	name string,
	have []manifest.File,
	locked *v1alpha1.LockedChart,
	brought []manifest.File,
	history ChartHistory,
) ([]manifest.File, error) {
	if locked == nil {
		return history(name, scaffold.Digest(brought))
	}
	if scaffold.Digest(have) == locked.SHA256 {
		return have, nil
	}
	kept, err := r.keptChart(name)
	if err != nil || scaffold.Digest(kept) == locked.SHA256 {
		return kept, err
	}
	base, err := history(name, locked.SHA256)
	if err == nil && base == nil {
		err = diag.Errorf("fetch the whole history (git fetch --unshallow)",
			"update the chart %s: it was changed, and no commit here has it as fleetctl %s brought it", name, locked.Fleetctl)
	}
	return base, err
}
