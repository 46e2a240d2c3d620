package adopt

import (
	"bytes"
	"io/fs"
	"path"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// ruleNotApplied is the rule by which validate reports a file that nothing applies.
const ruleNotApplied = "not-applied"

// passedOver returns a warning for each file with objects of Cluster API as JSON that Flux does not read. Of a folder without a
// kustomization.yaml, Flux takes the files that end in .yaml and .yml, and says nothing of others.
func passedOver(files fs.FS, read map[string]bool) (findings diag.Findings) {
	_ = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // what cannot be listed is not rendered either, which has a finding
		case entry.IsDir():
			if name != "." && strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules" {
				return fs.SkipDir
			}
			return nil
		case path.Ext(name) != ".json" || read[name] || !entry.Type().IsRegular():
			return nil
		}
		if info, err := entry.Info(); err != nil || info.Size() > int64(render.Limits.Bytes) {
			return nil //nolint:nilerr // Flux would not read it either
		}
		content, err := fs.ReadFile(files, name)
		if err == nil && bytes.Contains(content, []byte("cluster.x-k8s.io/")) && bytes.Contains(content, []byte(`"kind"`)) {
			findings = append(findings, diag.Finding{
				Severity: diag.SeverityWarning, Rule: ruleNotApplied, File: name, Line: 1,
				Summary: "nothing applies the objects of Cluster API in this file: Flux takes files that end in .yaml or .yml, and no other",
				Hint:    "rename it, name it under resources of a kustomization.yaml, or delete it",
			})
		}
		return nil
	})
	return findings
}
