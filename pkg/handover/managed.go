package handover

import (
	"context"
	"sync"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// ManagedElsewhere asks the API servers of Clusters who manages them. It returns, by NAMESPACE/NAME, the Clusters that
// another management cluster of the fleet has taken over, with the owner that their record names. The objects of these
// Clusters at client are leftover copies. ManagedElsewhere leaves out Clusters that are not paused at client, that do
// not answer, that were detached, or whose record names another fleet. Every administrator of a Cluster can write its
// record, so ask the named management cluster before anything depends on the answer.
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
		if c.Paused { // the leftover copy of a Cluster that was handed over stays paused
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
