package checkup

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/preflight"
)

// checkProviderPort checks that the port of the docker provider is free on this machine, and names the program that has
// it.
func (c *checks) checkProviderPort(ctx context.Context) preflight.Result {
	s := c.session
	return management.CheckPort(ctx, s.Deps.Store, s.Mgmt.Name, s.Host, management.InMemoryPort)
}
