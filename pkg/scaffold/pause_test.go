package scaffold

import (
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

// Every patch of a pause is known as one again, and has a target.
func TestPausePatches(t *testing.T) {
	patches, err := PausePatches()
	if err != nil || len(patches) == 0 {
		t.Fatalf("%d patches, %v", len(patches), err)
	}
	for i, p := range patches {
		if patch := yamledit.Lookup(p, "patch"); patch == nil || !IsPausePatch(patch.Value) {
			t.Errorf("patch %d is not known as one of a pause", i)
		}
		if target := yamledit.Lookup(p, "target"); target == nil || target.Kind != yaml.MappingNode {
			t.Errorf("patch %d has no target", i)
		}
	}
}
