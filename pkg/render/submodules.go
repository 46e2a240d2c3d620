package render

import (
	"bytes"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Submodules returns a warning for each folder of files that a Kustomization applies, or has such a folder in it, and whose files are
// another repository's. Nobody reads or fetches these files.
func Submodules(files fs.FS, applied []*Kustomization) (findings diag.Findings) {
	named := map[string]bool{}
	if kind, err := within.Kind(files, ".gitmodules"); err == nil && kind.IsRegular() {
		if info, err := fs.Stat(files, ".gitmodules"); err == nil && info.Size() <= int64(Limits.Bytes) {
			content, _ := fs.ReadFile(files, ".gitmodules") // without it, only checked out submodules are known
			for _, dir := range SubmodulePaths(content) {
				named[dir] = true
			}
		}
	}
	_ = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || !entry.IsDir() || name == ".":
			return nil //nolint:nilerr // what cannot be listed is not rendered either, which has a finding
		case name == ".git":
			return fs.SkipDir
		}
		if entries, err := fs.ReadDir(files, name); err != nil || len(entries) > 0 {
			return nil //nolint:nilerr // as above
		}
		if (named[name] || within.Other(files, name)) && Applies(applied, name) {
			findings = append(findings, SubmoduleFinding(name))
		}
		return nil
	})
	return findings
}

// SubmodulePaths returns the folders that a .gitmodules names. They may be any texts.
func SubmodulePaths(gitmodules []byte) (all []string) {
	for line := range bytes.Lines(gitmodules) {
		key, value, _ := strings.Cut(string(line), "=")
		if dir := path.Clean(strings.Trim(strings.TrimSpace(value), `"`)); strings.TrimSpace(key) == "path" && dir != "." {
			all = append(all, dir)
		}
	}
	return all
}

// Applies tells whether a folder is in a folder that one of the Kustomizations applies, or contains such a folder.
func Applies(all []*Kustomization, dir string) bool {
	return slices.ContainsFunc(all, func(k *Kustomization) bool {
		return k.Path == "." || k.Path == dir || strings.HasPrefix(dir, k.Path+"/") || strings.HasPrefix(k.Path, dir+"/")
	})
}

// SubmoduleFinding is the finding about a folder whose files are another repository's.
func SubmoduleFinding(dir string) diag.Finding {
	return diag.Finding{
		Severity: diag.SeverityWarning, Rule: RuleSubmodule, File: dir,
		Summary: "the files in this folder are another repository's (a submodule, or a clone): they are not checked, and Flux gets them only " +
			"from a GitRepository with recurseSubmodules",
		Hint: "copy the files into the repo, or have Flux follow the other repository with a GitRepository of its own",
	}
}
