package standing

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// Refuse is what init refuses before its first step, from what is known without the management cluster: its work is elsewhere, or another
// machine has made it. init, its dry run and doctor ask the same.
func Refuse(ctx context.Context, s *session.Session) error {
	if r, err := s.Cluster.Load(); err == nil && r.PivotedTo != "" {
		return diag.Errorf("look at it with `fleetctl status`; `fleetctl host start` serves a fleet repo without a remote to it again; "+
			"once `fleetctl host delete` has ended the old host, `fleetctl connect` lets init and upgrade work with it",
			"the management cluster %s was pivoted to %s: init would make a second one for the same fleet", r.Name, r.PivotedTo)
	}
	if err := RefuseForgotten(ctx, s); err != nil {
		return err
	}
	return RefuseAnother(ctx, s)
}

// RefuseAt is what init refuses of a cluster that is there, before it changes anything of it: the cluster has handed its work over, there
// are snapshots of another one, or the fleet repo names another one.
func RefuseAt(ctx context.Context, s *session.Session, client *kube.Client) error {
	journal, err := RefuseHandedOver(ctx, s, client)
	if err != nil {
		return err
	}
	if err := RefuseForgottenAt(ctx, s, client, journal); err != nil {
		return err
	}
	return RefuseSecond(ctx, s, client)
}
