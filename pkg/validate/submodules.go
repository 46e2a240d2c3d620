package validate

import (
	"slices"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// checkSubmodules reports applied folders whose files are in another repository: submodules, checked out or not, and clones inside the
// repo. Validate does not read such folders, and Flux gets them empty.
func (r *run) checkSubmodules() (findings diag.Findings) {
	for _, dir := range r.tree.submodules() {
		if !render.Applies(r.rendered.Kustomizations, dir) {
			continue
		}
		told := render.SubmoduleFinding(dir)
		findings = append(findings, finding(RuleForeign, dir, 0, 0, told.Summary, told.Hint))
	}
	return findings
}

// submodules returns the folders of the repo's submodules and clones. A submodule that is not checked out is an empty folder, which
// .gitmodules names. Other entries of .gitmodules have no effect.
func (t *tree) submodules() []string {
	all := slices.Clone(t.others)
	var content []byte
	if f := t.byPath[".gitmodules"]; f != nil {
		content = f.content
	}
	for _, dir := range render.SubmodulePaths(content) {
		if entries, folder := t.folders[dir]; folder && len(entries) == 0 {
			all = append(all, dir)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
