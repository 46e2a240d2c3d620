package render

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// maxNested is how deep texts within texts are screened. The patch of an inline transformer in a kustomization.yaml is at the second level.
const maxNested = 4

// screenForKustomize is Screen for a file that kustomize reads. Kustomize parses every file that is named as a resource or a patch as YAML,
// whatever its extension, and parses the texts of patches once more. A file with another extension may not be YAML at all.
func screenForKustomize(name string, src []byte) diag.Findings {
	if !mayBomb(src) && !mayReach(src) {
		if !isYAML(name) {
			return nil
		}
		return Screen(name, src)
	}
	documents, err := yamledit.ParseWithin(src, Limits)
	if err != nil {
		if isYAML(name) || yamledit.IsBeyond(err) {
			return diag.Findings{screenFinding(name, src, err)}
		}
		return nil
	}
	for _, n := range documents {
		if at, err := bombIn(n, 0); err != nil {
			f := syntaxFinding(RuleScreen, name, nil, err)
			f.Line, f.Column = at.Line, at.Column
			return diag.Findings{f}
		}
	}
	return nil
}

// mayBomb tells whether a text has the first characters of an anchor and an alias, or may be nested deep.
func mayBomb(src []byte) bool {
	return !yamledit.Tame(src) && (bytes.IndexByte(src, '&') < 0 || bytes.IndexByte(src, '*') >= 0)
}

// bombOf says why kustomize must not get a text: the text is YAML beyond the limits, or contains such a text.
func bombOf(src []byte, depth int) error {
	if depth > maxNested || !mayBomb(src) && !mayReach(src) {
		return nil
	}
	documents, err := yamledit.ParseWithin(src, Limits)
	if yamledit.IsBeyond(err) {
		return err
	}
	if err != nil {
		return nil //nolint:nilerr // a text that is not YAML is no YAML bomb
	}
	for _, n := range documents {
		if _, err := bombIn(n, depth); err != nil {
			return err
		}
	}
	return nil
}

// bombIn finds the first YAML bomb among the texts below n, or the first path that is too deep, and says what is wrong. It screens each
// text where it is written, and not where an alias repeats it.
func bombIn(n *yaml.Node, depth int) (*yaml.Node, error) {
	if n.Kind == yaml.ScalarNode {
		if err := bombOf([]byte(n.Value), depth+1); err != nil {
			return n, err
		}
	}
	for i, inner := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && reaches(n.Content[i-1], inner) {
			return inner, errReaches
		}
		if at, err := bombIn(inner, depth); err != nil {
			return at, err
		}
	}
	return nil, nil
}

var errReaches = fmt.Errorf("the path has more than %d fields: no object that people write is so deep", Limits.Depth)

// mayReach tells whether a text may have a path that errReaches is about. Kustomize only makes the fields of a path with the option create.
func mayReach(src []byte) bool {
	return (bytes.Count(src, []byte("/")) > Limits.Depth || bytes.Count(src, []byte(".")) > Limits.Depth) &&
		(bytes.IndexByte(src, '\\') >= 0 || bytes.Contains(bytes.ToLower(src), []byte("create")))
}

// reaches tells whether a field of a label, a replacement or a transformer has a path so deep that the object it makes takes minutes to
// write: each line of it is indented by its depth.
func reaches(key, value *yaml.Node) bool {
	switch strings.ToLower(yamledit.Text(yamledit.Resolve(key))) {
	case "path", "fieldpath", "fieldpaths":
	default:
		return false
	}
	paths := []*yaml.Node{yamledit.Resolve(value)}
	if paths[0].Kind == yaml.SequenceNode {
		paths = paths[0].Content
	}
	return slices.ContainsFunc(paths, func(n *yaml.Node) bool {
		text := yamledit.Text(yamledit.Resolve(n))
		return max(strings.Count(text, "/"), strings.Count(text, ".")) > Limits.Depth
	})
}

// screen screens the patches of a Flux object, which are in no file of the folder.
func (s buildSpec) screen() error {
	for i, p := range s.Patches {
		if err := bombOf([]byte(p.Patch), 0); err != nil {
			return fmt.Errorf("patches[%d]: %w", i, err)
		}
	}
	return nil
}
