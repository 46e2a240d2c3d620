package render

import (
	"bytes"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// maxNested is how many texts within texts are looked into: the patch of a transformer that stands in a kustomization.yaml is the second.
const maxNested = 4

// screenForKustomize is Screen for a file that kustomize reads. Kustomize takes any file for YAML that is named as a resource or a patch,
// whatever it is called, and reads the texts of patches as YAML once more. A file with another ending may be no YAML at all.
func screenForKustomize(name string, src []byte) diag.Findings {
	if !mayBomb(src) {
		if !isYAML(name) {
			return nil
		}
		return Screen(name, src)
	}
	documents, err := yamledit.ParseWithin(src, Limits)
	if err != nil {
		if isYAML(name) || errors.Is(err, yamledit.ErrExpands) {
			return diag.Findings{screenFinding(name, src, err)}
		}
		return nil
	}
	for _, n := range documents {
		if at := bombIn(n, 0); at != nil {
			f := syntaxFinding(RuleScreen, name, nil, yamledit.ErrExpands)
			f.Line, f.Column = at.Line, at.Column
			return diag.Findings{f}
		}
	}
	return nil
}

// mayBomb says that a text has what an anchor and an alias begin with.
func mayBomb(src []byte) bool {
	return bytes.IndexByte(src, '&') >= 0 && bytes.IndexByte(src, '*') >= 0
}

// isBomb tells whether a text is YAML that expands to more than there is room for, or has such a text in it.
func isBomb(src []byte, depth int) bool {
	if depth > maxNested || !mayBomb(src) {
		return false
	}
	documents, err := yamledit.ParseWithin(src, Limits)
	if err != nil {
		return errors.Is(err, yamledit.ErrExpands)
	}
	for _, n := range documents {
		if bombIn(n, depth) != nil {
			return true
		}
	}
	return false
}

// bombIn finds the first text below n that is a bomb; nil where there is none. Each text is looked at where it is written, not where an alias
// repeats it.
func bombIn(n *yaml.Node, depth int) *yaml.Node {
	if n.Kind == yaml.ScalarNode && isBomb([]byte(n.Value), depth+1) {
		return n
	}
	for _, inner := range n.Content {
		if at := bombIn(inner, depth); at != nil {
			return at
		}
	}
	return nil
}

// screen is for the patches of a Flux object: they come to kustomize from elsewhere than a file of the folder.
func (s buildSpec) screen() error {
	for i, p := range s.Patches {
		if isBomb([]byte(p.Patch), 0) {
			return fmt.Errorf("patches[%d]: %w", i, yamledit.ErrExpands)
		}
	}
	return nil
}
