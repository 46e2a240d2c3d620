package render

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// components returns the components of a Flux Kustomization, as paths for kustomize. Like kustomize-controller it accepts only folders of
// the repo, and ignores missing folders if the Kustomization says so.
func (w *walk) components(it *item) ([]string, diag.Findings) {
	var out []string
	var findings diag.Findings
	for i, name := range it.spec.Components {
		refuse := func(rule, summary, hint string) {
			at := w.r.repo.locate(it.k.Source, "spec", "components", i)
			findings = append(findings, diag.Finding{
				Severity: diag.SeverityError, Rule: rule, File: at.file, Line: at.line, Column: at.column, Hint: hint,
				Summary: fmt.Sprintf("%s: spec.components[%d]: %s", it.k.Owner, i, summary),
			})
		}
		clean, ok := inside(it.k.Path, name)
		switch {
		case isRemote(name) || isGitAddress(name):
			refuse(RuleRemote, fmt.Sprintf("%.100q would have to be fetched from elsewhere", name), remoteHint)
		case name == "" || !ok:
			refuse(RulePath, fmt.Sprintf("%.100q leads out of the fleet repo", name),
				"name a folder of the repo, from the folder "+it.k.Path+" that is applied")
		case w.r.repo.isDir(clean):
			out = append(out, given(it.k.Path, clean))
		case w.r.repo.isFile(clean):
			refuse(RulePath, clean+" is a file", "name the folder that its kustomization.yaml is in")
		case !it.spec.IgnoreMissingComponents:
			refuse(RulePath, fmt.Sprintf("there is no folder %s in the repo", clean), "")
		}
	}
	return out, findings
}

// locate returns the place of a field of an object in its file. If the file does not have the field, it returns the place of the object.
func (r *repo) locate(source Source, path ...any) place {
	whole := place{file: source.File, line: source.Line}
	content, err := r.read(source.File)
	if err != nil || source.Line == 0 {
		return whole
	}
	for _, d := range split(content) {
		line, ok := d.start()
		if !ok || line != source.Line {
			continue
		}
		documents, err := yamledit.ParseWithin(d.text, Limits)
		if err != nil || len(documents) != 1 {
			return whole
		}
		n := yamledit.Find(documents[0], path...)
		if n == nil || n.Kind == yaml.ScalarNode && strings.TrimSpace(n.Value) == "" {
			return whole
		}
		return place{source.File, n.Line + d.line - 1, n.Column}
	}
	return whole
}
