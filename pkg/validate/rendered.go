package validate

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// renderedRules maps the renderer's rules to rules of this package.
var renderedRules = map[string]string{
	render.RuleScreen: RuleLimit, render.RuleLimits: RuleLimit, render.RuleSyntax: RuleSyntax, render.RuleDecode: RuleType,
	render.RulePath:   RuleMissingPath,
	render.RuleRemote: RuleKustomize, render.RuleIncomplete: RuleKustomize,
	render.RuleKustomize: RuleKustomize, render.RuleSubstitute: RuleVariable, render.RuleEmpty: RuleVariable, render.RulePatch: RulePatch,
	render.RuleLiteral: RuleVariable, render.RuleMayBeEmpty: RuleVariable,
	render.RuleSource: RuleForeign, render.RuleSubmodule: RuleForeign, render.RuleValues: RuleValue,
	render.RuleField: RuleUnknownField, render.RuleChart: RuleHelm, render.RuleDuplicate: RuleDuplicate, render.RuleTwice: RuleDuplicate,
	render.RuleConflict: RuleConflict,
}

// renderFindings returns the renderer's findings that no other check has reported: a file that cannot be read, a missing chart, values that
// the chart refuses.
func (r *run) renderFindings(l *placement) diag.Findings {
	told, twice := map[string]bool{}, map[string]bool{}
	for _, c := range l.clusters {
		if c.told {
			told[c.file.path] = true
		}
		for _, f := range c.findings {
			if f.Severity == diag.SeverityError {
				told[f.File] = true
			}
			if f.Rule == RuleDuplicateName { // each of its objects is made twice
				twice[f.File] = true
			}
		}
	}
	releases := r.releaseSources()
	var out, charts diag.Findings
	for _, f := range r.rendered.Findings {
		found, takes := f.Rule, takesFolder(f, releases)
		rule := cmp.Or(renderedRules[found], found)
		switch {
		case f.Rule == render.RuleChartRef: // checkReferences reports it, with the line
			continue
		case (rule == RuleValue || rule == RuleHelm || rule == RuleMissingPath) && told[f.File],
			rule == RuleConflict && twice[f.File], r.brokenAt(f):
			continue
		}
		f.Rule = rule
		if d := r.tree.documentAt(f.File, f.Line); rule == RuleMissingPath && d != nil && kindOf(d) == "Kustomization" && f.Line == d.node.Line {
			at := locate(d.node, "spec.path")
			f.Line, f.Column = at.Line, at.Column
		}
		if f.Severity == diag.SeverityError || rule == RuleConflict || found == render.RuleEmpty {
			f.Severity = severityOf(rule)
		}
		if rule == RuleForeign && releases[render.Source{File: f.File, Line: f.Line}] && r.saidTogether(f) {
			charts = append(charts, f)
			continue
		}
		if r.unrendered == nil {
			r.unrendered = map[said]bool{}
		}
		r.unrendered[sayingOf(f)] = r.unrendered[sayingOf(f)] || takes
		if found == render.RuleDecode {
			r.undecoded = append(r.undecoded, sayingOf(f))
		}
		out = append(out, f)
	}
	return append(out, chartsElsewhere(charts)...)
}

// toldByField drops the renderer's findings about objects that it could not read, or whose patches lack a target, if the checks of the
// objects report the field.
func (r *run) toldByField(findings diag.Findings, objects []*object) diag.Findings {
	told, patches := map[render.Source]bool{}, map[render.Source]bool{}
	for _, o := range objects {
		for _, f := range o.findings {
			told[o.Source] = told[o.Source] || f.Rule == RuleType || f.Rule == RuleValue
			patches[o.Source] = patches[o.Source] || f.Rule == RuleKustomize
		}
	}
	return slices.DeleteFunc(findings, func(f diag.Finding) bool {
		at := render.Source{File: f.File, Line: f.Line}
		return told[at] && slices.Contains(r.undecoded, sayingOf(f)) || patches[at] && f.Rule == RuleKustomize
	})
}

// saidTogether tells whether a finding may be merged with others like it. That is so in a repo with its own layout, for files that are not
// excluded and have no comments that silence rules.
func (r *run) saidTogether(f diag.Finding) bool {
	file := r.tree.byPath[f.File]
	_, excluded := r.exclusion.Of(f.File)
	return r.isForeign() && !excluded && file != nil && len(file.ignores) == 0
}

// chartsElsewhere merges the findings about HelmReleases whose charts are not wholly in the repo, and whose objects are therefore not
// checked.
func chartsElsewhere(all diag.Findings) diag.Findings {
	if len(all) < 2 {
		return all
	}
	slices.SortFunc(all, func(a, b diag.Finding) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) })
	all = slices.CompactFunc(all, func(a, b diag.Finding) bool { return a.File == b.File && a.Line == b.Line })
	f := all[0]
	f.Summary = fmt.Sprintf("the charts of HelmReleases (%d, this is the first), or charts that they depend on, are not in the repo: "+
		"neither what they make nor their values are checked", len(all))
	f.Hint = "copy a chart into the repo, and name it by its path in a GitRepository of the repo: then it is rendered"
	return diag.Findings{f}
}

// said is the summary of a finding, with its place.
type said struct {
	file          string
	line          int
	rule, summary string
}

func sayingOf(f diag.Finding) said { return said{f.File, f.Line, f.Rule, f.Summary} }

// ownFaults are the rules of the renderer about faults that a file has whether or not another one can be read.
var ownFaults = []string{
	render.RulePath, render.RuleField, render.RuleDecode, render.RuleDuplicate, render.RuleTwice, render.RuleConflict, render.RuleSource,
	render.RuleLiteral,
}

// brokenAt tells whether a finding is about a file that cannot be read, or may come of such a file in the folder. Another finding reports
// the file.
func (r *run) brokenAt(f diag.Finding) bool {
	if slices.Contains(ownFaults, f.Rule) {
		return false
	}
	dirs := []string{path.Dir(f.File)}
	if i := slices.IndexFunc(r.rendered.Releases, func(rel *render.Release) bool {
		return rel.Object.Source == render.Source{File: f.File, Line: f.Line}
	}); i >= 0 {
		release := r.rendered.Releases[i]
		if !bytes.Contains(release.Object.JSON, []byte(`"valuesFrom"`)) {
			dirs = nil
		}
		if release.Chart != "" {
			dirs = append(dirs, release.Chart)
		}
	}
	for _, k := range r.rendered.Kustomizations {
		if k.Source.File == f.File && k.Source.Line == f.Line {
			dirs = append(dirs, k.Path)
		}
	}
	for _, broken := range r.tree.files {
		if !broken.broken {
			continue
		}
		for _, dir := range dirs {
			if broken.path == f.File || strings.HasPrefix(broken.path, dir+"/") {
				return true
			}
		}
	}
	return false
}

// unbuilt are the rules of the renderer that mean that the objects of a whole folder are missing.
var unbuilt = []string{
	render.RuleScreen, render.RuleSyntax, render.RuleDecode, render.RulePath, render.RuleRemote, render.RuleField,
	render.RuleKustomize, render.RuleTwice, render.RuleIncomplete,
}

// lacksObjects tells whether a folder could not be built. Its faults were reported, and its objects are unknown.
func (r *run) lacksObjects() bool {
	releases := r.releaseSources()
	return slices.ContainsFunc(r.rendered.Findings, func(f diag.Finding) bool { return takesFolder(f, releases) })
}

// takesFolder tells whether the objects of a whole folder are missing because of the fault that a finding of the renderer reports. If a
// HelmRelease cannot be read, only the objects of its chart are missing.
func takesFolder(f diag.Finding, releases map[render.Source]bool) bool {
	return (f.Severity == diag.SeverityError || f.Rule == render.RuleIncomplete) && slices.Contains(unbuilt, f.Rule) &&
		!releases[render.Source{File: f.File, Line: f.Line}]
}

func (r *run) releaseSources() map[render.Source]bool {
	out := map[render.Source]bool{}
	for _, release := range r.rendered.Releases {
		out[release.Object.Source] = true
	}
	return out
}
