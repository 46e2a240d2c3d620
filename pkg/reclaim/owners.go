package reclaim

import (
	"context"
	"fmt"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownership"
)

// untoldError is the error for a management cluster that answers, but whose list of clusters does not tell which clusters it owns. Such a
// management cluster still exists, even if the user says that it is gone.
type untoldError struct{ text string }

func (e *untoldError) Error() string { return e.text }

func untold(hint, format string, args ...any) error {
	return diag.Wrap("", &untoldError{fmt.Sprintf(format, args...)}, hint)
}

// clustersOf are the clusters of a management cluster of the fleet. An empty list counts only if the management cluster is complete.
func clustersOf(ctx context.Context, fleet string, target *management.Target) ([]capi.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	client, err := target.Client(ctx)
	switch {
	case err != nil && !target.Known():
		// Another machine may have made it: that it is not here says nothing.
		return nil, diag.Wrap("this machine does not know how to reach it", err,
			"if it lives, `fleetctl connect` gives this machine the way to it")
	case err != nil:
		return nil, err
	}
	return ownedAt(ctx, fleet, target.Name, client)
}

// ownedAt are the clusters of the management cluster called name that client reaches. A management cluster that was lost and made again has
// no clusters until init or a restore has ended, although the clusters of the lost one still run. ownedAt returns an untoldError for an API
// server that does not own the clusters yet, or no longer owns them.
func ownedAt(ctx context.Context, fleet, name string, client *kube.Client) ([]capi.Cluster, error) {
	const finish = "finish it with `fleetctl init`, and bring back what it had with `fleetctl restore`"
	claim, err := ownership.ReadClaim(ctx, client)
	switch {
	case err != nil:
		return nil, err
	case claim == nil:
		return nil, untold(finish, "the cluster at %s belongs to no fleet yet: it is half made, or not the one that owned clusters",
			client.Host())
	case fleet != "" && claim.Fleet != fleet || claim.Cluster != name:
		return nil, untold("connect to the right one with `fleetctl connect`", "the cluster at %s is another one: %s", client.Host(), claim)
	}
	// The journal comes first: what ends between the two has its Clusters by then.
	journal, err := handover.ReadJournal(ctx, client)
	switch {
	case err != nil:
		return nil, err
	case journal.Active():
		return nil, untold("finish that first: `"+journal.Command()+"`", "it is in the middle of %s", journal.What())
	case journal != nil && journal.Role == handover.RoleSource && journal.Whole() && journal.Phase.Committed():
		return nil, untold("connect to that one with `fleetctl connect`",
			"it has handed its work over to %s, which owns its clusters", journal.Target.Name)
	}
	manager, err := capi.New(client)
	if err != nil {
		return nil, err
	}
	clusters, err := manager.Clusters(ctx)
	if err != nil || len(clusters) > 0 {
		return clusters, err
	}
	there, err := manager.HasClusterKind(ctx)
	if err == nil && !there {
		err = untold(finish, "Cluster API is not installed there: it is half made")
	}
	return nil, err
}
