package validate

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// singleFile are the rules about a file by itself, whoever reads it.
var singleFile = []string{RuleSyntax, RuleLimit, RuleDuplicateField}

// passOver takes the files that Flux does not read from those that are broken: nothing that Flux applies suffers from them. A repo with its
// own layout may have templates of other programs that look like YAML, as those of Ansible and cookiecutter do.
func (r *run) passOver(renderer *render.Renderer) {
	var inputs map[string]bool
	for _, f := range r.tree.files {
		if !f.broken || f.path == v1alpha1.FileName || f.path == v1alpha1.LockFileName {
			continue
		}
		if inputs == nil {
			inputs = r.tree.generatorInputs()
		}
		f.unread = renderer.LeavesOut(f.path) || r.isForeign() && (inputs[f.path] || !r.mayRead(f))
	}
	for _, f := range r.tree.files {
		f.broken = f.broken && !f.unread // not before, because mayRead looks at all broken files
	}
}

// mayRead tells whether Flux may read a file: to build a Kustomization, or for a chart of a HelmRelease.
func (r *run) mayRead(f *file) bool {
	if r.rendered.Files[f.path] {
		return true
	}
	for _, g := range r.gaps() {
		if g.everywhere || g.files[f.path] || g.unused[f.path] {
			return true
		}
	}
	for _, release := range r.rendered.Releases {
		if release.Chart != "" && (strings.HasPrefix(f.path, release.Chart+"/") || r.dependsOn(release.Chart, f)) {
			return true
		}
	}
	name := []byte(path.Base(f.path)) // of a file with values
	return slices.ContainsFunc(r.rendered.Objects, func(o *render.Object) bool {
		return (o.Kind == render.KindHelmRelease || o.Kind == "HelmChart") && bytes.Contains(o.JSON, name)
	})
}

// dependsOn tells whether a chart may have the chart with this file for a dependency.
func (r *run) dependsOn(chart string, f *file) bool {
	of := r.tree.byPath[path.Join(chart, "Chart.yaml")]
	if of == nil || !bytes.Contains(of.content, []byte("file://")) {
		return false
	}
	for dir := path.Dir(f.path); dir != "."; dir = path.Dir(dir) {
		if r.tree.byPath[path.Join(dir, "Chart.yaml")] != nil {
			return true
		}
	}
	return false
}

// generatorInputs returns the files that a kustomization.yaml takes into a ConfigMap or Secret, and no kustomization.yaml uses otherwise.
// Kustomize does not look into them.
func (t *tree) generatorInputs() map[string]bool {
	inputs, others := map[string]bool{}, map[string]bool{}
	for _, f := range t.files {
		if !layout.IsKustomization(f.path) {
			continue
		}
		for _, d := range f.documents {
			for field, value := range d.object {
				to := others
				if field == "configMapGenerator" || field == "secretGenerator" {
					to = inputs
				}
				eachText(value, func(text string) { to[path.Join(path.Dir(f.path), text)] = true })
			}
		}
	}
	for name := range others {
		delete(inputs, name)
	}
	return inputs
}

// excuse turns the errors about files that Flux does not read into warnings.
func (r *run) excuse(findings diag.Findings) diag.Findings {
	for i := range findings {
		f := &findings[i]
		if file := r.tree.byPath[f.File]; file != nil && file.unread && f.Severity == diag.SeverityError && slices.Contains(singleFile, f.Rule) {
			f.Severity = diag.SeverityWarning
			f.Summary += "; Flux does not read it as YAML"
		}
	}
	return findings
}
