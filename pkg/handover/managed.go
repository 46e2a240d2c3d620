package handover

import (
	"context"
	"sync"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// ManagedElsewhere asks Clusters of a management cluster themselves who manages them, and returns those that another one of the fleet has
// taken over since they were this one's, by NAMESPACE/NAME with what they say of that one: what is left of them here is a copy that nobody
// needs. Those that are not paused here, that do not answer, that were detached, and of which a record of another fleet tells are not among
// them. A record is the word of who administers that cluster: ask the other one before anything depends on it.
func ManagedElsewhere(ctx context.Context, client *kube.Client, clusters []capi.Cluster, fleet string) (map[string]capi.Owner, error) {
	others := map[string]capi.Owner{}
	if fleet == "" || len(clusters) == 0 {
		return others, nil
	}
	uid, err := ClusterUID(ctx, client)
	if err != nil {
		return nil, err
	}
	manager, err := capi.New(client)
	if err != nil {
		return nil, err
	}
	here := map[string]capi.Cluster{}
	var names []string
	for _, c := range clusters {
		if c.Paused { // what was handed over is left so; what is not is acted upon
			here[c.FullName()] = c
			names = append(names, c.FullName())
		}
	}
	var mu sync.Mutex
	_ = eachOwner(ctx, names, func(ctx context.Context, cluster kube.Key) error {
		kubeconfig, err := manager.WorkloadKubeconfig(ctx, cluster)
		if err != nil {
			return err
		}
		owner, err := readOwner(ctx, kubeconfig)
		if err != nil || owner.Fleet != fleet || owner.ManagementCluster == "" || owner.UID == "" || owner.UID == uid ||
			owner.Epoch <= here[cluster.String()].Owner.Epoch {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		others[cluster.String()] = owner
		return nil
	})
	return others, nil
}
