package checkup

import (
	"context"
	"fmt"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/preflight"
)

// tagsTold bounds the named places. One place shows what is wrong with all.
const tagsTold = 3

// checkFleetTags checks that the clusters carry this fleet's tags. A copied repo has the tags of the original fleet.
// The management cluster of the copy would make machines that the original fleet takes for its own.
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
	hint := "if this copy is a separate fleet, tag them with the identity in " + fleetrepo.IdentityFile
	if s.Provisional {
		hint = "if this copy is to become a separate fleet, remove these tags until init has made " + fleetrepo.IdentityFile +
			"; otherwise restore that file"
	}
	return preflight.Fail(hint, "clusters are tagged as another fleet's: %s", plain.Names(places, tagsTold))
}
