package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	kustypes "sigs.k8s.io/kustomize/api/types"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// idleReplacements reports the targets of replacements that match no object of the built folder. Kustomize skips them without a word.
func (c *closure) idleReplacements(dir string, k *kustFile, built result) diag.Findings {
	var out diag.Findings
	for i, field := range k.Replacements {
		for _, r := range c.replacements(dir, field) {
			if reidentifiesBy(r) {
				return nil // this target and later ones may look for what no object has any more
			}
			for j, t := range r.Targets {
				if t.Select == nil || t.Select.Name != "" && !isOne(t.Select.Name) || built.has(t.Select) {
					continue
				}
				out = append(out, k.idle(fmt.Sprintf("replacements[%d] sets nothing in targets[%d]: no object is %s", i, j, describe(t.Select)),
					"replacements", i, "targets", j, "select"))
			}
		}
	}
	return out
}

// reidentifiesBy tells whether a replacement may change the fields by which targets find an object. Without paths, it sets the name.
func reidentifiesBy(r kustypes.Replacement) bool {
	return slices.ContainsFunc(r.Targets, func(t *kustypes.TargetSelector) bool {
		return len(t.FieldPaths) == 0 || slices.ContainsFunc(t.FieldPaths, func(field string) bool {
			return field == "kind" || field == "apiVersion" || strings.HasPrefix(field, "metadata.") || strings.HasPrefix(field, "metadata[")
		})
	})
}

// replacements returns the replacements of a field: its own one, or those in the file that it names. Kustomize reports a faulty file.
func (c *closure) replacements(dir string, field kustypes.ReplacementField) []kustypes.Replacement {
	if field.Path == "" {
		return []kustypes.Replacement{field.Replacement}
	}
	text := []byte(c.text(dir, field.Path))
	var several []kustypes.Replacement
	if sigsyaml.Unmarshal(text, &several) == nil {
		return several
	}
	var one kustypes.Replacement
	if sigsyaml.Unmarshal(text, &one) != nil {
		return nil
	}
	return []kustypes.Replacement{one}
}

// idleImages reports the images of a kustomization.yaml that no object of the built folder has. An image without a tag or digest only says
// where the image is copied from. People list such copies for all folders together, so that is no finding.
func (c *closure) idleImages(dir string, k *kustFile, built result) diag.Findings {
	for _, field := range k.Replacements { // replacements come later, and may have changed the images
		for _, r := range c.replacements(dir, field) {
			for _, t := range r.Targets {
				if strings.Contains(strings.Join(t.FieldPaths, " "), "image") {
					return nil
				}
			}
		}
	}
	there := images{}
	for _, o := range built.Resources() {
		if value, err := o.Map(); err == nil && o.GetKind() != KindKustomization {
			there.add(value, false)
		}
	}
	var out diag.Findings
	for i, image := range k.Images {
		if there.lack(image) {
			f := k.idle(fmt.Sprintf("images[%d] changes nothing: no object has the image %.200s", i, image.Name), "images", i, "name")
			f.Hint = there.hint(image.Name)
			out = append(out, f)
		}
	}
	return out
}

// idleImages reports the images of a Flux Kustomization that none of its objects has.
func idleImages(it *item, objects []*content) diag.Findings {
	if len(it.spec.Images) == 0 {
		return nil
	}
	there := images{}
	for _, c := range objects {
		var value any
		if c.Kind != KindKustomization && json.Unmarshal(c.json, &value) == nil {
			there.add(value, false)
		}
	}
	var out diag.Findings
	for i, image := range it.spec.Images {
		if there.lack(addImage(nil, image)[0]) {
			out = append(out, diag.Finding{
				Severity: diag.SeverityWarning, Rule: RulePatch, File: it.k.Source.File, Line: it.k.Source.Line,
				Summary: fmt.Sprintf("%s: spec.images[%d] changes nothing: no object has the image %.200s", it.k.Owner, i, image.Name),
				Hint:    there.hint(image.Name),
			})
		}
	}
	return out
}

// images are all texts of objects that may be images, without tags and digests. A Flux Kustomization has none: it only says which images
// to change. They are true if their field is called image.
type images map[string]bool

// add adds the texts in a value. field says that the value is that of a field called image.
func (all images) add(value any, field bool) {
	switch v := value.(type) {
	case string:
		name := imageName(v)
		all[name] = all[name] || field
	case []any:
		for _, item := range v {
			all.add(item, false)
		}
	case map[string]any:
		for key, item := range v {
			all.add(item, key == "image")
		}
	}
}

// imageName returns an image without its tag and digest.
func imageName(image string) string {
	name, _, _ := strings.Cut(image, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		return name[:i]
	}
	return name
}

// lack tells whether an image with a tag or digest is the image of no object, neither before nor after the change. The name of an image may
// be a pattern; then lack returns false.
func (all images) lack(image kustypes.Image) bool {
	if image.NewTag == "" && image.Digest == "" || !isOne(image.Name) {
		return false
	}
	for _, name := range []string{image.Name, image.NewName} {
		if _, there := all[imageName(name)]; there && name != "" {
			return false
		}
	}
	return true
}

// hint names the image with almost the same name.
func (all images) hint(name string) string {
	var fields []string
	for _, image := range slices.Sorted(maps.Keys(all)) {
		if all[image] {
			fields = append(fields, image)
		}
	}
	if nearest := diag.Nearest(imageName(name), fields); nearest != "" {
		return "did you mean " + nearest + "?"
	}
	return "correct its name, or remove it"
}
