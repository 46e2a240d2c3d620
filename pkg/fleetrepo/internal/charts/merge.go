package charts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// Prefer says whose lines to take if the team and fleetctl have changed the same lines.
type Prefer string

// The choices of Prefer. With PreferNobody such lines are an error.
const (
	PreferNobody   Prefer = ""
	PreferTeam     Prefer = "team"
	PreferFleetctl Prefer = "fleetctl"
)

// Merge merges a chart line by line: base is the chart as fleetctl brought it, team the team's chart, and fleetctl this fleetctl's chart. A
// base of nil means that nobody knows it. Merge returns the files of the merged chart, sorted by path, and an error finding for each place
// that both sides have changed. A file with such a place is not among the merged files. Files have LF in the place of CRLF, because a base
// from Git has it also where Git for Windows writes the team's files with CRLF.
func Merge(base, team, fleetctl []manifest.File, prefer Prefer) ([]manifest.File, diag.Findings) {
	before, ours, theirs := linesOf(base), linesOf(team), linesOf(fleetctl)
	all := maps.Clone(before)
	maps.Copy(all, ours)
	maps.Copy(all, theirs)
	var merged []manifest.File
	var conflicts diag.Findings
	for _, file := range slices.Sorted(maps.Keys(all)) {
		content, ok := mergeFile(before[file], ours[file], theirs[file], prefer)
		if !ok {
			conflicts = append(conflicts, conflictsIn(file, before[file], ours[file], theirs[file])...)
		}
		if content != nil {
			merged = append(merged, manifest.File{Path: file, Content: content})
		}
	}
	return merged, conflicts
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
		finding.Line, finding.Summary = c.Line, "the team has changed lines that fleetctl removes"
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
		finding.Summary = "the team has removed it, and fleetctl has changed it"
	case fleetctl == nil:
		finding.Summary = "the team has changed it, and fleetctl has removed it"
	default:
		finding.Summary = "it differs from fleetctl's chart, and nothing says which differences are the team's"
	}
	return diag.Findings{finding}
}

// ByPath returns the content of each file by its path. The content of an empty file is not nil.
func ByPath(files []manifest.File) map[string][]byte {
	all := make(map[string][]byte, len(files))
	for _, f := range files {
		all[f.Path] = append([]byte{}, f.Content...)
	}
	return all
}

// linesOf is ByPath with LF instead of CRLF, in files that have CRLF at the ends of all lines.
func linesOf(files []manifest.File) map[string][]byte {
	all := ByPath(files)
	for file, content := range all {
		if manifest.CRLF(content) {
			all[file] = manifest.LF(content)
		}
	}
	return all
}

// mergeFile returns a file with the changes of both sides since base; nil means no file. ok is false if both have changed the same lines
// and no side is preferred.
func mergeFile(base, team, fleetctl []byte, prefer Prefer) (merged []byte, ok bool) {
	switch prefer {
	case PreferTeam:
		return manifest.MergeFor(manifest.SideA, base, team, fleetctl), true
	case PreferFleetctl:
		return manifest.MergeFor(manifest.SideB, base, team, fleetctl), true
	case PreferNobody:
	}
	return manifest.Merge(base, team, fleetctl)
}
