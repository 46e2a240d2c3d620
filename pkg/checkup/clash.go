package checkup

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/preflight"
)

// checkProviderPort looks whether the docker provider can have its port on this machine, and names who has it.
func (c *checks) checkProviderPort(ctx context.Context) preflight.Result {
	s := c.session
	return management.CheckPort(ctx, s.Deps.Store, s.Mgmt.Name, s.Host, management.InMemoryPort)
}
