package validate

import (
	"maps"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// An environment without Flux applies none of its files yet, and a feature that is gone from the repo is missing all the same.
func TestFeatureThatIsGone(t *testing.T) {
	files := fleet(t)
	target := scaffold.FeatureTarget{Layout: layoutOfTests, Environment: "production"}
	enabled, err := scaffold.EnableFeature("plain", target)
	if err != nil {
		t.Fatal(err)
	}
	files[enabled.Path] = string(enabled.Content)
	result := validate(t, files, knownKinds(t))
	found := ofRule(result.Findings, RuleMissingPath)
	if len(found) != 2 || found[0].File != enabled.Path || !strings.Contains(found[0].Summary, "features/plain/non-namespaced") {
		t.Errorf("%+v", found)
	}

	made, err := scaffold.FeatureFiles("plain")
	if err != nil {
		t.Fatal(err)
	}
	whole := maps.Clone(files)
	for _, f := range made {
		whole[f.Path] = string(f.Content)
	}
	if found := ofRule(validate(t, whole, knownKinds(t)).Findings, RuleMissingPath); len(found) > 0 {
		t.Errorf("the feature is there: %+v", found)
	}
}
