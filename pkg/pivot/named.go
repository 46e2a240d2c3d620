package pivot

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/repoaccess"
)

// nameTarget writes the name of the target, which has taken over, into the fleet repo.
func (p *Move) nameTarget(
	ctx context.Context, target *Target, commit *following.Pushed, endpoint *repoaccess.Endpoint, detail func(string),
) error {
	return converge.Name(ctx, target.client, commit, endpoint, converge.Naming{Name: target.Name, By: "fleetctl pivot"}, detail)
}
