//go:build integration

package validate

import (
	"testing"

	"github.com/fleetctl/fleetctl/pkg/validate/schema"
	"github.com/fleetctl/fleetctl/templates/templatestest"
)

// The same mistakes and more of them, by the CRDs of every provider's release.
func TestSeededManifestsByRealCRDs(t *testing.T) {
	s := &schemas{Set: schema.NewSet()}
	for _, file := range templatestest.CRDFiles(t) {
		if err := s.addFolder(file); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range validate(t, rawRepo(), s.Set).Findings {
		if f.Rule != RuleDeprecated {
			t.Errorf("%s: %s [%s] (%s)", f.Severity, f, f.Rule, f.Hint)
		}
	}
	seedManifests(t, s.Set, true)
}
