package validate

import (
	"testing"

	"github.com/fleetctl/fleetctl/pkg/layout"
)

// The records of what a management cluster has handed over are in a folder that validate knows, beside one that is unknown.
func TestHandedOverFolder(t *testing.T) {
	for _, folder := range []string{layout.HandedOverDir, "handed-down"} {
		files := fleet(t)
		files["providers/docker/v1/"+folder+"/eu.yaml"] = "# a record\n"
		if found := ofRule(validate(t, files, knownKinds(t)).Findings, RuleFolder); len(found) > 0 != (folder != layout.HandedOverDir) {
			t.Errorf("%s: %v", folder, found)
		}
	}
}
