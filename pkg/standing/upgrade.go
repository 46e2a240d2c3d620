package standing

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// MustStand returns an error if the cluster that `fleetctl upgrade apply` upgrades does not exist.
func MustStand(ctx context.Context, s *session.Session) error {
	if !s.Opts.UpgradeOnly {
		return nil
	}
	const hint = "make it with `fleetctl init`"
	if s.NewFleet {
		return diag.Errorf(hint, "there is no fleet in %s to upgrade", s.Opts.Dir)
	}
	if s.HostErr != nil {
		return s.HostErr
	}
	st, err := s.Host.State(ctx)
	switch {
	case err != nil:
		return err
	case st == host.StateAbsent:
		return diag.NotReady(hint, "the management cluster %s does not exist", s.Mgmt.Name)
	}
	return nil
}
