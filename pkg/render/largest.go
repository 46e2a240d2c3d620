package render

import (
	"cmp"
	"fmt"
	"path"

	kustypes "sigs.k8s.io/kustomize/api/types"

	"github.com/fleetctl/fleetctl/pkg/plain"
)

// manyEntries is the least number of entries of a list that may be named as the reason for a slow build.
const manyEntries = 20

// largest names the probable reason for a slow build: the list with most entries, and the largest file. The error of a build that ran out
// of time quotes it, because kustomize does not tell what it works on.
func (c *closure) largest() string {
	var field, in string
	most := manyEntries - 1
	for dir, k := range c.tops {
		for name, n := range entries(k) {
			if n > most || n == most && (dir < in || dir == in && name < field) {
				most, field, in = n, name, dir
			}
		}
	}
	file, size := "", -1
	for name, content := range c.files {
		if !c.written[name] && cmp.Or(cmp.Compare(len(content), size), cmp.Compare(file, name)) > 0 {
			file, size = name, len(content)
		}
	}
	text := fmt.Sprintf("%s, of which %s is the largest", plain.Count(len(c.files), "file"), file)
	if field != "" {
		text = fmt.Sprintf("%s of %s (%s), with ", field, path.Join(in, "kustomization.yaml"), plain.Count(most, "entry")) + text
	}
	return text
}

// entries returns the lengths of a kustomization's lists whose entries are compared with all objects.
func entries(k *kustypes.Kustomization) map[string]int {
	targets := 0
	for _, r := range k.Replacements {
		targets += max(1, len(r.Targets))
	}
	return map[string]int{
		"replacements": targets, "patches": len(k.Patches), "resources": len(k.Resources), "components": len(k.Components),
		"configMapGenerator": len(k.ConfigMapGenerator), "secretGenerator": len(k.SecretGenerator), "images": len(k.Images),
		"replicas": len(k.Replicas), "labels": len(k.Labels), "generators": len(k.Generators), "transformers": len(k.Transformers),
	}
}
