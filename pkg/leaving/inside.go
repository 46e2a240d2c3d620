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
	// AnswerTime limits how long one workload cluster's API server may take to answer the questions about its content.
	AnswerTime = 10 * time.Second
	// AtOnce is how many workload clusters are asked, or drained, at the same time.
	AtOnce = 64
	// DrainTimeout bounds the draining of one workload cluster: clouds take minutes to delete a load balancer.
	DrainTimeout = 10 * time.Minute
	// MostText limits the shown length of a text from inside a workload cluster.
	MostText = 400
)

// Inside is what a workload cluster has inside, as far as its deletion is concerned.
type Inside struct {
	Cluster capi.Cluster
	client  *kube.Client
	Items   []drain.Item
	// Dead says why the cluster's API server could not be asked. Untold says why an API server that answers did not
	// tell everything.
	Dead, Untold error
	// Children are the workload clusters that the cluster itself manages.
	Children []string
	// Simulated says that the cluster has no Kubernetes. The in-memory provider answers in its place, and has nothing
	// in a cloud.
	Simulated bool
	// Undrained says why the cluster could not be drained. Such a cluster is not deleted.
	Undrained error
}

// Look finds out whether a cluster manages other clusters, and which resources it has in its cloud.
func (in *Inside) Look(ctx context.Context, manager *capi.Manager) {
	in.client, in.Dead = enter(ctx, manager, in.Cluster.Key())
	if in.client != nil && kube.IsAbsent(in.Dead) { // a simulated API server lacks an API that every real one has
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

// enter connects to the API server of a workload cluster, and checks that it answers.
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

// asked limits the time of a question to a workload cluster.
func asked(ctx context.Context, ask func(context.Context) error) error {
	asking, cancel := context.WithTimeoutCause(ctx, AnswerTime, fmt.Errorf("no answer within %s", AnswerTime))
	defer cancel()
	err := ask(asking)
	if err != nil && asking.Err() != nil {
		return context.Cause(asking)
	}
	return err
}

// Drain deletes the resources that the cluster's Kubernetes has made in its cloud. First it suspends the cluster's own
// Flux, which would make them again. Drain calls tell with what it waits for, also from several goroutines at once.
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
