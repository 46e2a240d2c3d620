package checkup

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/resolve"
)

// checkImageLock checks that fleet.lock has digests of images. An older fleetctl wrote none.
func (c *checks) checkImageLock(context.Context) preflight.Result {
	s := c.session
	lock, err := resolve.LockOf(s)
	switch {
	case err != nil:
		return preflight.FailWith(err)
	case lock == nil:
		return preflight.OK("`fleetctl init` writes them to %s", v1alpha1.LockFileName)
	case len(lock.Images) == 0:
		return preflight.Warn("`fleetctl lock` adds them, and the next `fleetctl init` does, too",
			"%s has none: an older fleetctl wrote it", v1alpha1.LockFileName)
	}
	return preflight.OK("%s has the digests of %s", v1alpha1.LockFileName, plain.Count(len(lock.Images), "image"))
}
