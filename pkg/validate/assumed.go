package validate

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/roots"
)

// assume makes the fleet from Flux's own objects if the repo has no fleet.yaml. The error is roots.ErrNoFlux.
func (r *run) assume() error {
	if slices.Contains(r.tree.folders["."], v1alpha1.FileName) { // a folder counts, too
		return nil
	}
	disk, err := r.tree.disk()
	if err != nil {
		return err
	}
	r.fleet, err = roots.Assume(r.tree.filesOver(disk), r.tree.dir)
	r.assumed = err == nil
	return err
}

// isForeign tells whether the repo has its own layout. Such a repo is older than its use of fleetctl, and objects that it refers to may be
// made elsewhere.
func (r *run) isForeign() bool { return r.fleet != nil && r.fleet.HasPaths() }

// checkFolders reports management clusters whose folder, which fleet.yaml names, does not exist.
func (r *run) checkFolders() diag.Findings {
	var out diag.Findings
	for i := range r.fleet.Spec.ManagementClusters {
		m := &r.fleet.Spec.ManagementClusters[i]
		if m.Path == "" {
			continue
		}
		if _, folder := r.tree.folders[m.Dir()]; !folder && m.Dir() != "." {
			out = append(out, r.fleetFinding(RuleMissingPath, fmt.Sprintf("spec.managementClusters[%d].path", i),
				fmt.Sprintf("there is no folder %.80s", m.Dir()), "name the folder that its Flux applies first"))
		}
	}
	return out
}

// fleetFinding is a finding about a field of fleet.yaml. Without a fleet.yaml it is about the file that says where Flux begins.
func (r *run) fleetFinding(rule, field, summary, hint string) diag.Finding {
	f := r.tree.byPath[v1alpha1.FileName]
	if f == nil || len(f.documents) == 0 {
		at := v1alpha1.FileName
		for _, root := range r.roots() {
			at = root.File
			break
		}
		return finding(rule, at, 1, 0, summary, hint)
	}
	at := locate(f.documents[0].node, field)
	return finding(rule, f.path, at.Line, at.Column, field+": "+summary, hint)
}

// roots returns the folders in which the Flux of a cluster begins.
func (r *run) roots() []roots.Root {
	disk, err := r.tree.disk()
	if err != nil {
		return nil
	}
	return roots.In(r.tree.filesOver(disk))
}

// checkAnything reports a repo of which Flux applies nothing, or of which nothing could be checked. Without this finding, the result would
// look like that of a valid repo.
func (r *run) checkAnything(renderer *render.Renderer, all []*object) diag.Findings {
	if len(r.rendered.Objects) == 0 {
		if r.tree.isBroken() || r.lacksObjects() {
			return nil // what keeps them from being applied is reported
		}
		hint := "`fleetctl init` writes what a management cluster applies; declare clusters with `fleetctl cluster add`"
		if hidden := r.hidden(renderer); hidden > 0 {
			hint = fmt.Sprintf("source-controller leaves out %d of its YAML files: look at .sourceignore", hidden)
		}
		f := r.fleetFinding(RuleNothing, "spec.managementClusters",
			"Flux applies nothing of this repo, so there was nothing to check", hint)
		if !r.hasObjects() { // a fleet that begins
			f.Severity = diag.SeverityWarning
		}
		return diag.Findings{f}
	}
	unknown := 0
	for _, o := range all {
		if o.unknown {
			unknown++
		}
	}
	if unknown > 0 && unknown == len(all) {
		return diag.Findings{r.fleetFinding(RuleNothing, "spec.managementClusters",
			fmt.Sprintf("nothing could be checked: no schema is known for any of the applied objects (%d)", len(all)),
			"give --crds with a folder of CRDs, or name the providers in fleet.yaml")}
	}
	return nil
}

// hasObjects tells whether the repo has any object that Flux could apply. Files that fleet.yaml excludes count.
func (r *run) hasObjects() bool {
	return slices.ContainsFunc(r.tree.files, func(f *file) bool {
		if f.excluded && isYAML(f.path) && f.documents == nil { // no finding is about an excluded file that cannot be read
			return bytes.Contains(f.content, []byte("apiVersion:")) && bytes.Contains(f.content, []byte("kind:"))
		}
		return f.path != v1alpha1.FileName && f.path != v1alpha1.LockFileName &&
			slices.ContainsFunc(f.documents, func(d *document) bool { return kindOf(d) != "" })
	})
}

// hidden counts the YAML files that Flux does not get because of a .sourceignore.
func (r *run) hidden(renderer *render.Renderer) int {
	n := 0
	for _, f := range r.tree.files {
		if isYAML(f.path) && !strings.HasPrefix(f.path, ".") && renderer.LeavesOut(f.path) {
			n++
		}
	}
	return n
}

// knowsFlux tells whether the repo has the CRDs of the Flux that applies it. Without CRDs, the cluster of a repo with its own layout may
// run an older version, which serves API versions that the CRD known here does not.
func (r *run) knowsFlux() bool {
	return !r.isForeign() || slices.ContainsFunc(r.tree.files, func(f *file) bool {
		return f.documents != nil && bytes.Contains(f.content, []byte("CustomResourceDefinition")) &&
			bytes.Contains(f.content, []byte(".toolkit.fluxcd.io"))
	})
}

// doubtVersions turns findings about the versions of Flux's kinds into warnings if the repo does not say which Flux applies it.
func (r *run) doubtVersions(all []*object) {
	if r.knowsFlux() {
		return
	}
	for _, o := range all {
		if !strings.HasSuffix(groupOf(o), ".toolkit.fluxcd.io") {
			continue
		}
		for i := range o.findings {
			if f := &o.findings[i]; f.Rule == RuleAPIVersion {
				f.Severity, f.Hint = diag.SeverityWarning, "the Flux that fleetctl knows no longer accepts this version ("+f.Hint+
					"); the repo does not say which Flux its cluster runs"
			}
		}
	}
}
