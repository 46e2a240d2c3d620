package change

import (
	"context"
	"errors"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/forge"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
)

// CheckCarry finds out whether Make could bring an edit to the remote, for commands that change a cluster before they push. It needs no
// edit, and checks nothing if the options neither push nor open a pull request. The remote has to answer, the local branch must be able to
// catch up without commits that the remote lacks, and the server has to accept a push to the branch. Nothing changes at the remote. Without
// DryRun the clone catches up, as Make would do. Errors: those of gitrepo's CatchUp and CheckPush, and gitrepo.ErrUnpushed.
//
// A hook that judges the content of commits, and somebody who changes the remote afterwards, can still refuse the push.
func CheckCarry(ctx context.Context, o Options) error {
	if !o.Push && !o.PullRequest {
		return nil
	}
	dir, err := fleetrepo.Find(o.Dir)
	if err != nil {
		return err
	}
	repo, err := fleetrepo.Open(dir)
	if err != nil {
		return err
	}
	git, err := gitrepo.OpenFor("push", dir,
		"leave --push and --pr out, and commit it yourself: the fleet repo is not the top of a Git repository")
	if err != nil {
		return err
	}
	to, err := newDestination(repo, git, o)
	if err != nil {
		return err
	}
	if err := o.reach(ctx, to); err != nil {
		return err
	}
	if err := checkUnpushed(ctx, git); err != nil {
		return err
	}
	return o.checkPush(ctx, to)
}

// reach brings the clone up to date with the remote or, in a dry run, only fetches.
func (o Options) reach(ctx context.Context, to *destination) error {
	if o.DryRun {
		return to.git.CheckCatchUp(ctx, to.auth)
	}
	if err := to.git.Recover(ctx); err != nil {
		return err
	}
	return to.git.CatchUp(ctx, to.auth)
}

// checkPush asks the server whether it accepts a push to the branch or, for a pull request, to a branch with a name like that of a change.
func (o Options) checkPush(ctx context.Context, to *destination) error {
	if !o.PullRequest {
		return to.git.CheckPush(ctx, to.auth, "")
	}
	branch := branchFor("may this account push here")
	if _, err := forge.Find(ctx, to.forge, forge.Request{Branch: branch, Base: to.base}); err != nil {
		return err
	}
	return to.git.CheckPush(ctx, to.auth, branch)
}

// ByPullRequest adds to the error about a branch to which nobody pushes that --pr is the way around it. It returns other errors unchanged.
func ByPullRequest(err error) error {
	if !errors.Is(err, gitrepo.ErrProtectedBranch) {
		return err
	}
	return diag.Wrap("", err, "use --pr in place of --push: it commits to a separate branch, and opens a pull request; nothing was "+
		"changed here; or "+diag.Hint(err))
}
