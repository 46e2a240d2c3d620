package lifecycle

import (
	"context"
	"fmt"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/drain"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
)

const (
	// insideTime bounds how long one workload cluster's API server may take to say what is in it.
	insideTime = 10 * time.Second
	// insideAtOnce is how many of them are asked, or drained, at once.
	insideAtOnce = 64
	// drainTimeout bounds the draining of one workload cluster: clouds take minutes to delete a load balancer.
	drainTimeout = 10 * time.Minute
)

// inside is what was found in a workload cluster that is to be deleted.
type inside struct {
	cluster capi.Cluster
	client  *kube.Client
	items   []drain.Item
	// dead is why the cluster's API server could not be asked; untold is why one that answers did not say all.
	dead, untold error
	// children are the workload clusters that it manages itself.
	children []string
	// simulated says that there is no Kubernetes inside: the in-memory provider answers in its place, and has nothing in a cloud.
	simulated bool
	// undrained is why it could not be drained. It is not deleted then.
	undrained error
}

// look looks whether a cluster manages others, and what it has in its cloud.
func (in *inside) look(ctx context.Context, manager *capi.Manager) {
	in.client, in.dead = enter(ctx, manager, in.cluster.Key())
	if in.client != nil && kube.IsAbsent(in.dead) { // what every API server has, this one has not
		in.dead, in.simulated = nil, true
	}
	if in.dead != nil || in.simulated {
		return
	}
	own, err := capi.New(in.client)
	if err == nil {
		err = asked(ctx, func(ctx context.Context) error {
			clusters, err := own.Clusters(ctx)
			in.children = management.FullNames(clusters)
			return err
		})
	}
	if err == nil {
		err = asked(ctx, func(ctx context.Context) (err error) {
			in.items, err = drain.Look(ctx, in.client)
			return err
		})
	}
	in.untold = err
}

// enter connects to the API server of a workload cluster, which answers then.
func enter(ctx context.Context, manager *capi.Manager, cluster kube.Key) (client *kube.Client, err error) {
	err = asked(ctx, func(ctx context.Context) error {
		kubeconfig, err := manager.WorkloadKubeconfig(ctx, cluster)
		if err != nil {
			return err
		}
		if client, err = kube.New(kubeconfig, kube.Options{Timeout: insideTime, MostBytes: kube.MostOfWorkload}); err != nil {
			return err
		}
		_, err = client.ServerVersion(ctx)
		return err
	})
	return client, err
}

// asked gives each question to a workload cluster its time.
func asked(ctx context.Context, ask func(context.Context) error) error {
	asking, cancel := context.WithTimeoutCause(ctx, insideTime, fmt.Errorf("no answer within %s", insideTime))
	defer cancel()
	err := ask(asking)
	if err != nil && asking.Err() != nil {
		return context.Cause(asking)
	}
	return err
}

// drain takes away what the cluster's Kubernetes has made in its cloud, once its own Flux is suspended, which would make it anew. tell, which may be called
// by several at once, is told what is waited for.
func (in *inside) drain(ctx context.Context, limit time.Duration, tell func(string)) error {
	name := in.cluster.FullName()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("gave up after %s", limit))
	defer cancel()
	if _, err := flux.NewSystem(in.client).Suspend(ctx); err != nil {
		return diag.Wrap("suspend the Flux of "+name, err, "")
	}
	return diag.Wrap("drain "+name, drain.Run(ctx, in.client, func(what string) { tell(name + ": " + what) }), "")
}
