package render

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// twice returns findings about objects that the files of one kustomization declare twice. kustomize then builds nothing and names neither
// place. names are the files that are built without a kustomization.yaml.
func (c *closure) twice(names []string) (out diag.Findings) {
	together := [][]string{names}
	for _, dir := range slices.Sorted(maps.Keys(c.tops)) {
		var files []string
		for _, name := range c.tops[dir].Resources {
			files = append(files, path.Join(dir, name))
		}
		together = append(together, files)
	}
	for _, files := range together {
		seen := map[string]Source{}
		for _, name := range files {
			objects, _ := parse(name, c.files[name]) // its faults are already reported
			for _, o := range objects {
				group, _, _ := strings.Cut(o.APIVersion, "/")
				id := strings.Join([]string{group, o.Kind, o.Metadata.Namespace, o.Metadata.Name}, "\x00")
				if first, again := seen[id]; again {
					out = append(out, diag.Finding{
						Severity: diag.SeverityError, Rule: RuleTwice, File: o.source.File, Line: o.source.Line,
						Summary: fmt.Sprintf("%s %s is declared twice", o.Kind, o.Metadata.Name),
						Hint: fmt.Sprintf("the other one is in %s, line %d: kustomize builds nothing of the folder while there are two",
							first.File, first.Line),
					})
					continue
				}
				seen[id] = o.source
			}
		}
	}
	return out
}
