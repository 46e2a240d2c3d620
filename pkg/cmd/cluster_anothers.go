package cmd

import (
	"context"
	"time"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/leaving"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// askTime bounds what cluster remove waits for a management cluster that it only asks whose the cluster is.
const askTime = 15 * time.Second

// refuseAnothers refuses the step of cluster remove that deletes, if the cluster's own record names another management cluster of the
// fleet: the machines are those of the other one. The change of Git does not need the management cluster. So one that this machine does
// not know, or that does not answer, is no obstacle.
func refuseAnothers(ctx context.Context, f *factory, cluster fleetrepo.Cluster, dir string) error {
	target, err := management.Find(f.store(), cluster.ManagementCluster, dir)
	if err != nil || target.Record == nil {
		return nil // this machine does not know it
	}
	asked, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	client, err := target.Client(asked)
	if err == nil {
		var refusal error
		refusal, err = leaving.RefuseAnothers(asked, target, client, kube.Key{Namespace: cluster.Name, Name: cluster.Name})
		if refusal != nil {
			return refusal
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		ui.Fprintf(f.streams.Err, "Management cluster %s does not tell whether another one manages cluster %s by now: %s\n",
			target.Name, cluster.Name, plain.Line(err.Error()))
	}
	return nil
}
