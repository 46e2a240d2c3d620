package validate

import (
	"flag"
	"fmt"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/render/rendertest"
	"github.com/fleetctl/fleetctl/pkg/validate/schema"
)

var seeds = flag.Int("seeds", 3, "how many random fleets are validated")

// A valid fleet is found valid, however people have written it. The CRDs of clouds are not available here, but in the integration test.
func TestRandomFleetsAreValid(t *testing.T) {
	randomFleets(t, knownKinds(t), RuleMissingCRDs)
}

// randomFleets validates some fleets; all that is found in them is wrong, but for what is of the rule but.
func randomFleets(t *testing.T, known *schema.Set, but string) {
	t.Helper()
	for seed := range uint64(*seeds) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			random, err := rendertest.Random(seed)
			if err != nil {
				t.Fatal(err)
			}
			files := map[string]string{}
			for name, content := range random.Files {
				files[name] = string(content)
			}
			result := validate(t, files, known)
			for _, f := range result.Findings {
				if f.Rule != but {
					t.Errorf("%s: %s [%s] (%s) in\n%s", f.Severity, f, f.Rule, f.Hint, files[f.File])
				}
			}
			if result.Clusters != len(random.Clusters) || result.Objects < result.Clusters {
				t.Errorf("%d clusters and %d objects", result.Clusters, result.Objects)
			}
		})
	}
}
