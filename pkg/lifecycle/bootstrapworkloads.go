package lifecycle

import (
	"context"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// waitWorkloads waits until the Flux of every workload cluster has applied its first revision. A Cluster that is declared paused gets no
// API server that Flux could be installed on, so waitWorkloads names it in a warning and does not wait for it.
func (b *bootstrap) waitWorkloads(ctx context.Context, client *kube.Client, manager *capi.Manager, detail func(string)) error {
	clusters, err := manager.Clusters(ctx)
	if err != nil {
		return err
	}
	without, names := unbegun(clusters)
	if len(names) > 0 {
		b.session.Deps.Report.Warn("not waiting for Flux on " + plain.Count(len(names), "cluster") + " that somebody has paused before the " +
			"control plane was initialized: " + strings.Join(names, ", "))
	}
	return flux.NewSystem(client).WaitWorkloads(ctx, without, detail)
}

// unbegun returns the names of the Clusters that are paused and were never begun, and those of their namespaces that have no other Cluster.
func unbegun(clusters []capi.Cluster) (namespaces, names []string) {
	var others []string
	for _, c := range clusters {
		if c.Unbegun() {
			namespaces, names = append(namespaces, c.Namespace), append(names, c.FullName())
		} else {
			others = append(others, c.Namespace)
		}
	}
	return slices.DeleteFunc(namespaces, func(n string) bool { return slices.Contains(others, n) }), names
}
