package validate

import (
	"path"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
)

// checkEnabledFeatures reports features that an environment has although their folders are gone. Rendering finds only those that something
// applies, and nothing applies the files of an environment before one of its clusters runs Flux.
func (r *run) checkEnabledFeatures() diag.Findings {
	rendered := map[string]bool{}
	for _, o := range r.rendered.Objects {
		rendered[o.Source.File] = true
	}
	for _, f := range r.rendered.Findings {
		rendered[f.File] = true
	}
	var out diag.Findings
	for _, f := range r.tree.files {
		if rendered[f.path] || path.Base(path.Dir(f.path)) != layout.FeaturesDir {
			continue
		}
		for _, d := range f.documents {
			spec, _ := d.object["spec"].(map[string]any)
			folder, _ := spec["path"].(string)
			source, _ := spec["sourceRef"].(map[string]any)
			folder = path.Clean(folder)
			own := kindOf(d) == "Kustomization" && source["name"] == "flux-system" // this repo, and no other source
			if own && strings.HasPrefix(folder, layout.FeaturesDir+"/") && !r.tree.has(folder) {
				at := locate(d.node, "spec.path")
				out = append(out, finding(RuleMissingPath, f.path, at.Line, at.Column, "there is no folder "+folder+" in the repo",
					"bring the feature back, or remove this file"))
			}
		}
	}
	return out
}
