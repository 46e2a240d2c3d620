package validate

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// checkSubmodules reports applied folders whose files are in another repository: submodules, checked out or not, and clones inside the
// repo. Validate does not read such folders, and Flux gets them empty.
func (r *run) checkSubmodules() (findings diag.Findings) {
	for _, dir := range r.tree.submodules() {
		if !r.isApplied(dir) {
			continue
		}
		findings = append(findings, finding(RuleForeign, dir, 0, 0,
			"the files in this folder are another repository's (a submodule, or a clone): they are not checked, and Flux gets them only from a "+
				"GitRepository with recurseSubmodules",
			"copy the files into the repo, or have Flux follow the other repository with a GitRepository of its own"))
	}
	return findings
}

// isApplied tells whether a folder is in a folder that a Flux Kustomization applies, or contains such a folder.
func (r *run) isApplied(dir string) bool {
	for _, k := range r.rendered.Kustomizations {
		if k.Path == "." || k.Path == dir || strings.HasPrefix(dir, k.Path+"/") || strings.HasPrefix(k.Path, dir+"/") {
			return true
		}
	}
	return false
}

// submodules returns the folders of the repo's submodules and clones. A submodule that is not checked out is an empty folder, which
// .gitmodules names. Other entries of .gitmodules have no effect.
func (t *tree) submodules() []string {
	all := slices.Clone(t.others)
	var content []byte
	if f := t.byPath[".gitmodules"]; f != nil {
		content = f.content
	}
	for line := range bytes.Lines(content) {
		key, value, _ := strings.Cut(string(line), "=")
		dir := path.Clean(strings.Trim(strings.TrimSpace(value), `"`))
		if strings.TrimSpace(key) != "path" {
			continue
		}
		if entries, folder := t.folders[dir]; folder && len(entries) == 0 && dir != "." {
			all = append(all, dir)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
