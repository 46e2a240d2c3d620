package render

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// maxNested is how deep texts within texts are screened. The patch of an inline transformer in a kustomization.yaml is at the second level.
const maxNested = 4

// screenForKustomize is Screen for a file that kustomize reads. Kustomize parses every file that is named as a resource or a patch as YAML,
// whatever its extension, and parses the texts of patches once more. A file with another extension may not be YAML at all.
func screenForKustomize(name string, src []byte) diag.Findings {
	if !mayBomb(src) {
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
	if depth > maxNested || !mayBomb(src) {
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

// bombIn finds the first YAML bomb among the texts below n, and says why it is one. It screens each text where it is written, and not where
// an alias repeats it.
func bombIn(n *yaml.Node, depth int) (*yaml.Node, error) {
	if n.Kind == yaml.ScalarNode {
		if err := bombOf([]byte(n.Value), depth+1); err != nil {
			return n, err
		}
	}
	for _, inner := range n.Content {
		if at, err := bombIn(inner, depth); err != nil {
			return at, err
		}
	}
	return nil, nil
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
