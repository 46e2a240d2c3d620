package leaving

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
)

// RefuseAnothers asks a workload cluster for its own record of its owner before it is deleted. The refusal says that the record names
// another management cluster of the fleet than this one, which acts on the cluster, too. err says that nobody could ask the management
// cluster. A workload cluster that does not answer is not refused.
func RefuseAnothers(ctx context.Context, target *management.Target, client *kube.Client, key kube.Key) (refusal, err error) {
	if target.Record == nil {
		return nil, nil
	}
	manager, err := capi.New(client)
	if err != nil {
		return nil, err
	}
	cluster, err := manager.Cluster(ctx, key)
	if err != nil || cluster == nil {
		return nil, err
	}
	at := handover.Side{Name: target.Name, Client: client}
	return handover.RefuseDeletion(ctx, at, []capi.Cluster{*cluster}, target.Record.FleetID)
}
