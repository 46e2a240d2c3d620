package management

import (
	"cmp"
	"context"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// givenTarget is the management cluster at the kubeconfig and context on the command line; nil without them. It ignores this machine's
// record of the name, which may belong to another cluster.
func givenTarget(store state.Store, name string, repo *ownership.Repo) (*Target, error) {
	g := store.Given
	if g == nil || name != "" && g.Name != "" && name != g.Name {
		return nil, nil
	}
	if name == "" {
		name = g.Name
	}
	if repo != nil && g.Name == "" && len(repo.Clusters) > 1 {
		return nil, diag.Usage("choose one with --management", "the fleet has several management clusters, and one of them is reached so: %s",
			strings.Join(repo.Clusters, ", "))
	}
	if name == "" && repo != nil && len(repo.Clusters) == 1 {
		name = repo.Clusters[0]
	}
	folder := name
	if name == "" { // in no fleet repo: there is nothing that it could be called by
		name, folder = cmp.Or(g.Context, "given"), "given"
	}
	if repo != nil && !repo.Declares(name) {
		repo = nil // it is not about this repo
	}
	return &Target{Name: name, Cluster: store.Cluster(folder), repo: repo, given: g}, nil
}

// Reached tells whether client reaches the target itself: the way on the command line may lead to another management cluster of the fleet.
// A cluster that does not say what it is counts as the target.
func (t *Target) Reached(ctx context.Context, client *kube.Client) (bool, error) {
	if t.given == nil {
		return true, nil // this machine's record of it leads there
	}
	claim, err := ownership.ReadClaim(ctx, client)
	return err == nil && (claim == nil || claim.Cluster == t.Name), err
}

// Known tells whether there is a way to the target that is no guess: this machine remembers it, or the command line says how it is reached.
func (t *Target) Known() bool { return t.Record != nil || t.given != nil }
