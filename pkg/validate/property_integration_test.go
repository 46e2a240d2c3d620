//go:build integration

package validate

import (
	"testing"

	"github.com/fleetctl/fleetctl/pkg/validate/schema"
	"github.com/fleetctl/fleetctl/templates/templatestest"
)

// So is what their charts make, by the CRDs of every provider's release.
func TestRandomFleetsAreValidByRealCRDs(t *testing.T) {
	s := &schemas{Set: schema.NewSet()}
	for _, file := range templatestest.CRDFiles(t) {
		if err := s.addFolder(file); err != nil {
			t.Fatal(err)
		}
	}
	randomFleets(t, s.Set, "")
}
