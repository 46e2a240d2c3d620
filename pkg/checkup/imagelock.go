package checkup

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/resolve"
)

// checkImageLock looks whether fleet.lock knows images: that of an older fleetctl does not.
func (c *checks) checkImageLock(context.Context) preflight.Result {
	s := c.session
	lock, err := resolve.LockOf(s)
	switch {
	case err != nil:
		return preflight.FailWith(err)
	case lock == nil:
		return preflight.OK("`fleetctl init` writes them to %s", v1alpha1.LockFileName)
	case len(lock.Images) == 0:
		return preflight.Warn("`fleetctl lock` adds them, and so does the next `fleetctl init`",
			"%s has none: an older fleetctl wrote it", v1alpha1.LockFileName)
	}
	return preflight.OK("%s has those of %s", v1alpha1.LockFileName, plain.Count(len(lock.Images), "image"))
}
