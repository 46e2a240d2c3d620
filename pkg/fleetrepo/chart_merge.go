package fleetrepo

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
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
	before, ours, theirs := byPath(base), byPath(have), byPath(brought)
	names := sortedSet(slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(ours)), slices.Collect(maps.Keys(theirs))))
	var conflicts diag.Findings
	var result []manifest.File
	for _, file := range names {
		merged, ok := merge(before[file], ours[file], theirs[file], prefer)
		switch {
		case !ok:
			conflicts = append(conflicts, conflictsIn(file, before[file], ours[file], theirs[file])...)
		case merged == nil && ours[file] != nil:
			e.Changes.Delete(file)
		case merged != nil && !bytes.Equal(merged, ours[file]):
			e.Changes.Write(manifest.File{Path: file, Content: merged})
		}
		if merged != nil {
			result = append(result, manifest.File{Path: file, Content: merged})
		}
	}
	if err := r.keepBrought(e, name, brought, scaffold.Digest(result) != scaffold.Digest(brought)); err != nil {
		return nil, err
	}
	return conflicts, nil
}

// broughtDir has the charts as fleetctl brought them, of which the team's have had changes ever since: no commit has those as they were.
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
		wanted = byPath(brought)
	}
	for file, content := range wanted {
		e.Changes.Write(manifest.File{Path: inKept(file), Content: content})
	}
	for _, f := range kept {
		if wanted[f.Path] == nil {
			e.Changes.Delete(inKept(f.Path))
		}
	}
	return nil
}

// keptChart are the files of a chart below broughtDir, with the paths that they have in the chart itself.
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

// conflictsIn returns the places of a file that the team and fleetctl have changed in different ways. There is one conflict for the whole
// file if one side has removed it, or if its base is not known.
func conflictsIn(file string, base, team, fleetctl []byte) diag.Findings {
	finding := diag.Finding{
		Severity: diag.SeverityError, Rule: "chart-conflict", File: file,
		Hint: "change them so that they agree, or decide for all such lines: --prefer team keeps the team's, --prefer fleetctl takes the new " +
			"ones; --dry-run shows the result",
	}
	var all diag.Findings
	for _, c := range manifest.Conflicts(base, team, fleetctl) {
		finding.Line, finding.Summary = c.Line, "the team has changed lines that fleetctl takes out"
		if first, _, _ := strings.Cut(strings.TrimSpace(c.B), "\n"); first != "" {
			finding.Summary = fmt.Sprintf("the team and fleetctl have changed the same lines; fleetctl has: %.80s", first)
		}
		all = append(all, finding)
	}
	if all != nil {
		return all
	}
	finding.Hint = "--prefer team keeps it as it is, --prefer fleetctl takes the new one; --dry-run shows the result"
	switch {
	case team == nil:
		finding.Summary = "the team has taken it out, and fleetctl has changed it"
	case fleetctl == nil:
		finding.Summary = "the team has changed it, and fleetctl has taken it out"
	default:
		finding.Summary = "it differs from fleetctl's chart, and nothing tells which of the differences are the team's"
	}
	return diag.Findings{finding}
}

func byPath(files []manifest.File) map[string][]byte {
	all := make(map[string][]byte, len(files))
	for _, f := range files {
		all[f.Path] = append([]byte{}, f.Content...) // an empty file is a file
	}
	return all
}

// merge returns a file with the changes of both sides since base; nil means no file. ok is false if both have changed the same lines and
// no side is preferred.
func merge(base, team, fleetctl []byte, prefer Prefer) (merged []byte, ok bool) {
	switch prefer {
	case PreferTeam:
		return manifest.MergeFor(manifest.SideA, base, team, fleetctl), true
	case PreferFleetctl:
		return manifest.MergeFor(manifest.SideB, base, team, fleetctl), true
	case PreferNobody:
	}
	return manifest.Merge(base, team, fleetctl)
}
