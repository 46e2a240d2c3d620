package leaving

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/drain"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
)

const (
	// AnswerTime limits how long the API server of one workload cluster may take to tell its content.
	AnswerTime = 10 * time.Second
	// AtOnce is how many of them are asked, or drained, at once.
	AtOnce = 64
	// DrainTimeout bounds the draining of one workload cluster: clouds take minutes to delete a load balancer.
	DrainTimeout = 10 * time.Minute
	// MostText limits the shown length of a text from inside a workload cluster.
	MostText = 400
)

// Inside is what was found in a workload cluster that is to be deleted.
type Inside struct {
	Cluster capi.Cluster
	client  *kube.Client
	Items   []drain.Item
	// Dead is why the cluster's API server could not be asked; Untold is why one that answers did not say all.
	Dead, Untold error
	// Children are the workload clusters that it manages itself.
	Children []string
	// Simulated says that there is no Kubernetes inside: the in-memory provider answers in its place, and has nothing in a cloud.
	Simulated bool
	// Undrained is why it could not be drained. It is not deleted then.
	Undrained error
}

// Look finds out whether a cluster manages other clusters, and which resources it has in its cloud.
func (in *Inside) Look(ctx context.Context, manager *capi.Manager) {
	in.client, in.Dead = enter(ctx, manager, in.Cluster.Key())
	if in.client != nil && kube.IsAbsent(in.Dead) { // what every API server has, this one has not
		in.Dead, in.Simulated = nil, true
	}
	if in.Dead != nil || in.Simulated {
		return
	}
	own, err := capi.New(in.client)
	if err == nil {
		err = asked(ctx, func(ctx context.Context) error {
			clusters, err := own.Clusters(ctx)
			in.Children = management.FullNames(clusters)
			return err
		})
	}
	if err == nil {
		err = asked(ctx, func(ctx context.Context) (err error) {
			in.Items, err = drain.Look(ctx, in.client)
			return err
		})
	}
	in.Untold = err
}

// enter connects to the API server of a workload cluster, which answers then.
func enter(ctx context.Context, manager *capi.Manager, cluster kube.Key) (client *kube.Client, err error) {
	err = asked(ctx, func(ctx context.Context) error {
		kubeconfig, err := manager.WorkloadKubeconfig(ctx, cluster)
		if err != nil {
			return err
		}
		if client, err = kube.New(kubeconfig, kube.Options{Timeout: AnswerTime, MostBytes: kube.MostOfWorkload}); err != nil {
			return err
		}
		_, err = client.ServerVersion(ctx)
		return err
	})
	return client, err
}

// asked gives each question to a workload cluster its time.
func asked(ctx context.Context, ask func(context.Context) error) error {
	asking, cancel := context.WithTimeoutCause(ctx, AnswerTime, fmt.Errorf("no answer within %s", AnswerTime))
	defer cancel()
	err := ask(asking)
	if err != nil && asking.Err() != nil {
		return context.Cause(asking)
	}
	return err
}

// Drain deletes the resources that the cluster's Kubernetes has made in its cloud. First it suspends the cluster's own Flux, which would
// make them again. Drain calls tell, also from several goroutines at once, with what it waits for.
func (in *Inside) Drain(ctx context.Context, limit time.Duration, tell func(string)) error {
	name := in.Cluster.FullName()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("gave up after %s", limit))
	defer cancel()
	if _, err := flux.NewSystem(in.client).Suspend(ctx); err != nil {
		return diag.Wrap("suspend the Flux of "+name, err, "")
	}
	return diag.Wrap("drain "+name, drain.Run(ctx, in.client, func(what string) { tell(name + ": " + what) }), "")
}

// OneByOne lets several goroutines report what they wait for.
func OneByOne(detail func(string)) func(string) {
	var mu sync.Mutex
	return func(what string) {
		mu.Lock()
		defer mu.Unlock()
		if detail != nil {
			detail(what)
		}
	}
}
