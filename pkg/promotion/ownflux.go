package promotion

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
)

const (
	// ownFluxLook bounds the look into one workload cluster. Many have an API server that this machine cannot reach.
	ownFluxLook = 10 * time.Second
	// ownFluxLooks is how many workload clusters are asked at a time.
	ownFluxLooks = 32
)

// NotAsked is a workload cluster whose own Flux could not be asked from this machine. What the management cluster says of it counts then.
type NotAsked struct {
	Cluster string `json:"cluster"`
	Reason  string `json:"reason"`
}

// lookInside asks the own Flux of each cluster whether it has applied the commit of its environment. The management cluster does not know
// that: it only sees that this Flux has a source and the Kustomizations.
func (p *run) lookInside(
	ctx context.Context, manager *capi.Manager, clusters []fleetrepo.Cluster, looks []environmentLook, commit string,
) {
	answers := make([]struct {
		missing []string
		err     error
	}, len(clusters))
	var group errgroup.Group
	group.SetLimit(ownFluxLooks)
	for i, c := range clusters {
		look := &looks[lookOf(looks, c)]
		if !slices.Contains(look.Own, c.Name) {
			continue
		}
		wanted := cmp.Or(commit, look.Commit)
		group.Go(func() error {
			answers[i].missing, answers[i].err = missingInside(ctx, manager, c.Name, wanted)
			return nil
		})
	}
	_ = group.Wait() // each answer has its error
	for i, c := range clusters {
		look := &looks[lookOf(looks, c)]
		for _, m := range answers[i].missing {
			look.Missing = append(look.Missing, fmt.Sprintf("the Flux of cluster %s: %s", c.Name, m))
		}
		switch err := answers[i].err; {
		case err == nil:
		case apierrors.ReasonForError(err) != "": // an API server has answered
			look.Missing = append(look.Missing, fmt.Sprintf("the Flux of cluster %s cannot be asked: %v", c.Name, err))
		default:
			p.notAsked[c.Name] = err.Error()
		}
	}
}

// clustersNotAsked lists them by name.
func (p *run) clustersNotAsked() []NotAsked {
	var out []NotAsked
	for _, name := range slices.Sorted(maps.Keys(p.notAsked)) {
		out = append(out, NotAsked{Cluster: name, Reason: p.notAsked[name]})
	}
	return out
}

func lookOf(looks []environmentLook, c fleetrepo.Cluster) int {
	return slices.IndexFunc(looks, func(l environmentLook) bool { return l.Environment == c.Environment })
}

func missingInside(ctx context.Context, manager *capi.Manager, name, commit string) ([]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, ownFluxLook, fmt.Errorf("no answer within %s", ownFluxLook))
	defer cancel()
	system, err := management.WorkloadFlux(ctx, manager, kube.Key{Namespace: name, Name: name})
	if err != nil {
		return nil, err
	}
	missing, err := system.MissingInside(ctx, commit)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return missing, err
}
