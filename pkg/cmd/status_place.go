package cmd

import (
	"context"
	"fmt"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/status"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// placeOf returns the function that tells whether another cluster has the place of the target in the fleet: the target was lost, was made
// again elsewhere, and came back. It returns nil if the command runs outside of the target's fleet repo, and for a standby.
func (f *factory) placeOf(target *management.Target) func(context.Context, *kube.Client) (*status.Problem, error) {
	repo, err := f.fleetRepo()
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(repo.Fleet.Spec.ManagementClusters, func(m v1alpha1.ManagementCluster) bool {
		return m.Name == target.Name && m.Repository == nil
	})
	if i < 0 {
		return nil
	}
	return func(ctx context.Context, client *kube.Client) (*status.Problem, error) {
		identity, err := fleetrepo.ReadIdentity(repo.Dir)
		if err != nil {
			return nil, err
		}
		files, err := within.FS(repo.Dir)
		if err != nil {
			return nil, err
		}
		place := standing.Place{
			Cluster: target.Cluster, Fleet: identity, Name: target.Name, Layout: repo.Fleet.Spec.ManagementClusters[i].Layout(), Repo: files,
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
				"`, or scale its providers to 0), and give this machine access to the other one: `fleetctl connect`",
		}, nil
	}
}
