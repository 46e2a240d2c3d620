package masters

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/management"
)

// isPermanent tells whether a management cluster stays after its work is done, because bootstrap has not made it on this machine. Somebody
// else has made a running management cluster of which this machine has no record. A cluster of the user's own was not made by fleetctl at
// all.
func isPermanent(ctx context.Context, deps management.Deps, dir, name string, declared v1alpha1.Host) (bool, error) {
	if hosts.TraitsOf(declared, "").Elsewhere {
		return true, nil
	}
	target, err := management.Find(deps.Store, name, dir)
	if err != nil {
		return false, err
	}
	if target.Record != nil {
		return !target.Record.Ephemeral, nil
	}
	there, err := target.Host(ctx)
	if err != nil {
		return false, err
	}
	now, err := there.State(ctx)
	if err != nil {
		return false, diag.Wrap("look whether the management cluster "+name+" is there", err, "")
	}
	return now != host.StateAbsent, nil
}
