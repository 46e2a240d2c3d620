package cmd

import (
	"context"
	"fmt"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/status"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// placeOf returns the function that tells whether another cluster has the place of the target in the fleet: the target was lost, was made
// again elsewhere or replaced by its standby, and came back. It returns nil if the command runs outside of a fleet repo, and for a standby.
func (f *factory) placeOf(target *management.Target) func(context.Context, *kube.Client) (*status.Problem, error) {
	repo, err := f.fleetRepo()
	if err != nil {
		return nil
	}
	if slices.Contains(repo.StandbyNames(), target.Name) {
		return nil
	}
	return func(ctx context.Context, client *kube.Client) (*status.Problem, error) {
		identity, err := fleetrepo.ReadIdentity(repo.Dir)
		if err != nil {
			return nil, err
		}
		declared, err := declaredPlace(ctx, client, repo, identity, target.Name)
		if err != nil || declared == nil {
			return nil, err
		}
		files, err := within.FS(repo.Dir)
		if err != nil {
			return nil, err
		}
		place := standing.Place{
			Cluster: target.Cluster, Fleet: identity, Name: target.Name, Layout: declared.Layout(), Repo: files,
		}
		other, err := place.Other(ctx, client)
		if err != nil || other == nil {
			return nil, err
		}
		return &status.Problem{
			Reason: fmt.Sprintf("TWO OF ITS NAME: the fleet repo says that another cluster has its place (%s: made %s); "+
				"both make and delete machines", place.Layout.Identity(), other),
			Hint: "pull the fleet repo, which may be an old clone; if it still says so, stop this one at once (`" +
				diag.ShellCommand("fleetctl", "host", "stop", "--management", target.Name) +
				"`, or scale its providers to 0), and give this machine access to the other one: `fleetctl connect`; " +
				"if the other one is gone, and a restore into this one was interrupted, run the same `fleetctl restore` again",
		}, nil
	}
}

// declaredPlace returns the management cluster of the fleet repo that has the name or, if none has it, the one whose folder the Flux of the
// reached cluster follows: an activated standby gives the entry its own name. It returns nil if there is none, or if the management cluster
// has a fleet repo of its own.
func declaredPlace(
	ctx context.Context, client *kube.Client, repo *fleetrepo.Repo, identity, name string,
) (*v1alpha1.ManagementCluster, error) {
	all := repo.Fleet.Spec.ManagementClusters
	i := slices.IndexFunc(all, func(m v1alpha1.ManagementCluster) bool { return m.Name == name })
	if i < 0 {
		claim, err := ownership.ReadClaim(ctx, client)
		if err != nil || claim == nil || claim.Fleet != identity {
			return nil, err
		}
		now, err := flux.NewSystem(client).Following(ctx)
		if err != nil {
			return nil, err
		}
		i = slices.IndexFunc(all, func(m v1alpha1.ManagementCluster) bool { return m.Dir() == now.Path })
	}
	if i < 0 || all[i].Repository != nil {
		return nil, nil //nolint:nilnil // this repo has no place for it
	}
	return &all[i], nil
}
