package render

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// maxNested is how many texts within texts are looked into: the patch of a transformer that stands in a kustomization.yaml is the second.
const maxNested = 4

// screenForKustomize is Screen for a file that kustomize reads. Kustomize reads every file that is named as a resource or a patch as YAML,
// whatever its ending, and reads the texts of patches as YAML once more. A file with another ending may be no YAML at all.
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

// mayBomb says that a text has what an anchor and an alias begin with, or may be nested deep.
func mayBomb(src []byte) bool {
	return !yamledit.Tame(src) && (bytes.IndexByte(src, '&') < 0 || bytes.IndexByte(src, '*') >= 0)
}

// bombOf says why a text is not for kustomize: it is YAML beyond the limits, or has such a text in it.
func bombOf(src []byte, depth int) error {
	if depth > maxNested || !mayBomb(src) {
		return nil
	}
	documents, err := yamledit.ParseWithin(src, Limits)
	if yamledit.IsBeyond(err) {
		return err
	}
	if err != nil {
		return nil //nolint:nilerr // it is no YAML, which is nobody's bomb
	}
	for _, n := range documents {
		if _, err := bombIn(n, depth); err != nil {
			return err
		}
	}
	return nil
}

// bombIn finds the first text below n that is a bomb, and says why. Each text is looked at where it is written, not where an alias repeats
// it.
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

// screen is for the patches of a Flux object: they come to kustomize from elsewhere than a file of the folder.
func (s buildSpec) screen() error {
	for i, p := range s.Patches {
		if err := bombOf([]byte(p.Patch), 0); err != nil {
			return fmt.Errorf("patches[%d]: %w", i, err)
		}
	}
	return nil
}
