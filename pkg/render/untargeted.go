package render

import (
	"fmt"
	"slices"

	"github.com/fluxcd/pkg/apis/kustomize"
	"go.yaml.in/yaml/v3"
	kustypes "sigs.k8s.io/kustomize/api/types"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

// What is said about a patch that NeedsTarget.
const (
	NeedsTargetSummary = "a list of operations needs a target, and nothing is built without one"
	NeedsTargetHint    = "add the target: the kind and the name of the objects to patch"
)

// NeedsTarget tells whether a patch is a list of operations (RFC 6902). Such a list does not name the object to patch, so kustomize refuses
// it without a target: see transformJson6902 in kustomize's PatchTransformer. It returns false for a text that is no YAML.
func NeedsTarget(patch string) bool {
	documents, err := yamledit.ParseWithin([]byte(patch), Limits)
	if err != nil || len(documents) == 0 || documents[0].Kind != yaml.SequenceNode || len(documents[0].Content) == 0 {
		return false
	}
	return !slices.ContainsFunc(documents[0].Content, func(item *yaml.Node) bool {
		item = yamledit.Resolve(item)
		_, op := entryOf(item, "op")
		return item.Kind != yaml.MappingNode || op == nil
	})
}

// untargeted returns the index of the first patch of a Flux object that lacks a target; -1 if there is none.
func untargeted(patches []kustomize.Patch) int {
	return slices.IndexFunc(patches, func(p kustomize.Patch) bool { return p.Target == nil && NeedsTarget(p.Patch) })
}

// untargeted reports a patch of a kustomization.yaml in dir that lacks a target.
func (c *closure) untargeted(dir string, k *kustFile, field string, i int, p kustypes.Patch) {
	text := p.Patch
	if p.Path != "" {
		text = c.text(dir, p.Path)
	}
	if p.Target == nil && NeedsTarget(text) {
		c.problem(RuleKustomize, k.at(field, i), fmt.Sprintf("%s[%d]: %s", field, i, NeedsTargetSummary), NeedsTargetHint)
	}
}
