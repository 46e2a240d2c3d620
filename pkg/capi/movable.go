package capi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/capi/internal/graph"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
)

// Movable tells whether two management clusters are ready for the hand-over of a graph.
type Movable struct {
	// Against has the reasons against the hand-over.
	Against []error
	// Waits names the objects that are still being made.
	Waits []string
	// Hold means that the target has its own Clusters, so its controllers cannot be stopped.
	Hold bool
	// Available are the Clusters that are Available. Epoch is the number of earlier hand-overs.
	Available []string
	Epoch     int64
}

// LookMovable checks whether the graph work can be handed over. whole says that work is everything that the source has. It reads both sides
// and changes nothing.
func LookMovable(ctx context.Context, from, to *Manager, work *Graph, whole bool) (*Movable, error) {
	var there clusterv1.ClusterList
	var source, target []InstalledProvider
	group, readCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return to.listAll(readCtx, "Clusters at the target", &there) })
	group.Go(func() (err error) { source, err = from.Installed(readCtx); return err })
	group.Go(func() (err error) { target, err = to.Installed(readCtx); return err })
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("prepare the hand-over: %w", err)
	}
	m := &Movable{Hold: len(there.Items) > 0, Waits: work.Unsettled()}
	if !whole {
		source = needed(source, work.ActedOn())
	}
	if err := providersFit(source, target); err != nil {
		m.Against = append(m.Against, err)
	}
	for _, item := range work.OfKind(clusterKind.Kind) {
		cluster := &clusterv1.Cluster{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, cluster); err != nil {
			return nil, fmt.Errorf("read %s: %w", item.Ref(), err)
		}
		if !cluster.DeletionTimestamp.IsZero() {
			m.Against = append(m.Against, fmt.Errorf("%s is being deleted", item.Ref()))
		}
		if isPaused(cluster) && len(graph.InTheMaking(item.Unstructured)) > 0 {
			m.Against = append(m.Against, fmt.Errorf("%s is paused before it is complete", item.Ref()))
		}
	}
	m.Available, m.Epoch = work.Available(), work.Epoch()
	return m, nil
}

// needed leaves out the providers that a target needs only for the Clusters that stay. With one cloud each, the management clusters of a
// common parent have neither the provider nor the credentials of the other one's cloud. It keeps the providers whose work may show in no
// object of a Cluster: an extension of the runtime, for example, is called for its ClusterClass.
func needed(installed []InstalledProvider, actedOn func(label string) bool) []InstalledProvider {
	ofObjects := []releases.ProviderType{releases.Infrastructure, releases.Bootstrap, releases.ControlPlane, releases.IPAM}
	return slices.DeleteFunc(slices.Clone(installed), func(p InstalledProvider) bool {
		return slices.Contains(ofObjects, p.Type) && !actedOn(p.Label())
	})
}

// providersFit returns an error for each provider of the source that the target lacks, has in an older version, or has not ready.
func providersFit(source, target []InstalledProvider) error {
	var errs []error
	for _, p := range source {
		i := slices.IndexFunc(target, func(t InstalledProvider) bool { return t.Name == p.Name && t.Type == p.Type })
		switch {
		case i < 0:
			errs = append(errs, fmt.Errorf("the target has no %s", p.Provider))
		case releases.IsOlder(target[i].Version, p.Version):
			errs = append(errs, fmt.Errorf("the target has %s, which is older than %s here", target[i].Provider, p.Version))
		case !target[i].Ready:
			errs = append(errs, fmt.Errorf("%s is not ready at the target: %s", target[i].Provider, target[i].Reason))
		}
	}
	if len(source) == 0 {
		errs = append(errs, errors.New("no provider is installed here"))
	}
	return errors.Join(errs...)
}
