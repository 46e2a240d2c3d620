package reclaim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// checkNewest refuses a working copy that differs from the remote of the fleet repo. Somebody may have added a management cluster to the
// remote, which then would not be asked. Somebody may have declared a cluster there, which then would not be protected. A folder without a
// remote, which this machine serves, is always the newest, unless it is a copy: see Delete.
func checkNewest(ctx context.Context, repo *fleetrepo.Repo, given change.Credentials) error {
	fleet := repo.Fleet.Spec.Git.URL
	git, err := gitrepo.Open(repo.Dir)
	var url string
	switch {
	case errors.Is(err, gitrepo.ErrNotARepository):
	case err != nil:
		return err
	default:
		if url, _, err = git.Remote(); err != nil {
			return err
		}
	}
	switch {
	case url == "" && fleet == "":
		return nil
	case url == "":
		return diag.Errorf("run it in a clone of "+fleet,
			"the folder %s has no remote, so nobody knows whether it is what the fleet repo %s has now", repo.Dir, fleet)
	}
	main, _ := repo.Fleet.Channel(v1alpha1.MainChannel)
	branch, err := git.Branch()
	if err != nil {
		return err
	}
	if main.Branch != "" && branch != main.Branch {
		return diag.Errorf(diag.ShellCommand("git", "switch", main.Branch),
			"the branch %s is checked out, and the fleet is what the branch %s says", branch,
			main.Branch)
	}
	dirty, err := git.Dirty(ctx)
	if err != nil {
		return err
	}
	if len(dirty) > 0 {
		return diag.Errorf("commit and push it, or put it aside with `git stash --include-untracked`",
			"the working copy of the fleet repo has uncommitted changes: %s", dirty[0])
	}
	auth, err := change.AuthFor(repo, given)
	if err != nil {
		return err
	}
	there, err := git.Fetch(ctx, auth)
	if err != nil {
		return err
	}
	here, err := git.Head()
	if err != nil {
		return err
	}
	if here != there {
		return diag.Errorf("git pull, push your own commits, and run the same command again",
			"the working copy of the fleet repo is not what the branch %s of %s is now: a management cluster that it does not name may own the "+
				"cluster", branch, url)
	}
	return nil
}

// FleetTargets are the targets, and the other management clusters of the same fleet that this machine remembers: fleet.yaml may lack a
// management cluster that still exists.
func FleetTargets(store state.Store, dir string, targets []*management.Target) ([]*management.Target, error) {
	identity, err := fleetrepo.ReadIdentity(dir)
	if err != nil || identity == "" {
		return targets, err
	}
	records, err := store.ListOf(func(string) bool { return true }) // a damaged one may be of this fleet, and own what looks like an orphan
	if err != nil {
		return nil, err
	}
	all := slices.Clone(targets)
	for _, r := range records {
		if r.FleetID != identity || slices.ContainsFunc(targets, func(t *management.Target) bool { return t.Name == r.Name }) {
			continue
		}
		t, err := management.Find(store, r.Name, dir)
		if err != nil {
			return nil, fmt.Errorf("find the management cluster %s, which this machine remembers of the fleet: %w", r.Name, err)
		}
		all = append(all, t)
	}
	return all, nil
}
