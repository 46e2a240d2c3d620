package checkup

import (
	"context"
	"fmt"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/preflight"
)

// tagsTold is how many places are named; one says what is wrong with all.
const tagsTold = 3

// checkFleetTags looks whether the clusters are tagged as this fleet's: a copied repo has the tags of the first one, and its management
// cluster would make machines that the first one takes for its own.
func (c *checks) checkFleetTags(context.Context) preflight.Result {
	s := c.session
	tags, err := c.tags()
	if err != nil {
		return preflight.FailWith(err)
	}
	foreign := slices.DeleteFunc(slices.Clone(tags), func(t fleetrepo.FleetTag) bool { return t.Fleet == s.Identity() })
	if len(foreign) == 0 {
		return preflight.OK("the tags of its clusters name this fleet")
	}
	var places []string
	for _, t := range foreign {
		places = append(places, fmt.Sprintf("%s:%d names %s", t.File, t.Line, t.Fleet))
	}
	hint := "in a copy that is a fleet of its own, give them the identity in " + fleetrepo.IdentityFile
	if s.Provisional {
		hint = "in a copy that is to be a fleet of its own, take them away until init has made " + fleetrepo.IdentityFile +
			"; else bring that file back"
	}
	return preflight.Fail(hint, "clusters are tagged as another fleet's: %s", plain.Names(places, tagsTold))
}
