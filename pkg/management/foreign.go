package management

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/ownership"
)

// ForeignError says of a host in StateForeign whose it is, as far as that is known.
func ForeignError(ctx context.Context, h host.Host) error {
	if marked, ok := h.(host.Marked); ok {
		if err := marked.Stranger(ctx); err != nil {
			return diag.Wrap("", err, ownership.ChooseNameHint)
		}
	}
	return diag.Errorf(ownership.ChooseNameHint+"; or remove that cluster with the tool that made it",
		"there is a cluster %s that fleetctl did not make", h.Name())
}
