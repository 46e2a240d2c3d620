package lifecycle

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/forge"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
)

// destination is where a change goes beyond this machine.
type destination struct {
	git  *gitrepo.Repo
	auth gitrepo.Auth
	// forge and base are where a pull request goes.
	forge forge.Options
	base  string
}

// make makes the edit. One that goes to the remote is made from what is there: others have pushed, and pull requests have been merged, since
// the working tree was brought up to date. It is made from the tree as it was first, for what a revision names then.
func (o ChangeOptions) make(ctx context.Context) (*fleetrepo.Repo, *fleetrepo.Edit, *destination, error) {
	repo, err := fleetrepo.Open(o.Dir)
	if err != nil {
		return nil, nil, nil, err
	}
	edit, editErr := o.edit(ctx, repo)
	if o.DryRun || !o.Push && !o.PullRequest {
		return repo, edit, nil, editErr
	}
	to, err := newDestination(repo, o)
	if err == nil {
		err = to.git.CatchUp(ctx, to.auth)
	}
	if err != nil {
		return nil, nil, nil, cmp.Or(editErr, err)
	}
	if repo, err = fleetrepo.Open(o.Dir); err != nil {
		return nil, nil, nil, err
	}
	edit, err = o.edit(ctx, repo)
	return repo, edit, to, err
}

// newDestination is where the fleet repo comes from. It asks nobody.
func newDestination(repo *fleetrepo.Repo, o ChangeOptions) (*destination, error) {
	to := &destination{}
	var err error
	if to.git, err = openGit(repo.Dir); err != nil {
		return nil, err
	}
	if to.auth, err = authFor(repo, o.Git); err != nil {
		return nil, err
	}
	url, base, err := to.git.Remote()
	if err != nil {
		return nil, err
	}
	if url == "" {
		return nil, diag.Errorf("leave --push and --pr out: a commit is all that it takes", "push: the fleet repo has no remote")
	}
	if !o.PullRequest {
		return to, nil
	}
	remote, err := v1alpha1.Git{URL: url}.ParseURL()
	if err != nil {
		return nil, err
	}
	to.base = base
	to.forge = forge.Options{Type: cmp.Or(o.Forge, repo.Fleet.Spec.Git.Forge), Remote: remote, Token: o.Git.Token, CA: to.auth.CA}
	return to, forge.Check(to.forge)
}

// push pushes the edit to the branch that is checked out.
func push(ctx context.Context, to *destination, edit *fleetrepo.Edit, o ChangeOptions, out *ChangeResult) error {
	synced, err := to.git.Sync(ctx, to.auth, o.intent(ctx), commitMessage(edit), gitrepo.Author{})
	if err != nil {
		return err
	}
	out.Commit, out.Pushed, out.Changed = synced.Commit, synced.Pushed, out.Changed || synced.Made || synced.Pushed
	return nil
}

// intent makes the edit again, in the fleet repo at root.
func (o ChangeOptions) intent(ctx context.Context) func(root string) ([]gitrepo.Change, error) {
	return func(root string) ([]gitrepo.Change, error) {
		now, err := fleetrepo.Open(root)
		if err != nil {
			return nil, err
		}
		again, err := o.edit(ctx, now)
		if err != nil {
			return nil, err
		}
		return gitFiles(again, root)
	}
}

// authFor is what reaches the remote of a fleet repo: what the caller gave, and what fleet.yaml says.
func authFor(repo *fleetrepo.Repo, given GitCredentials) (gitrepo.Auth, error) {
	git := repo.Fleet.Spec.Git
	auth := gitrepo.Auth{
		Username: cmp.Or(given.Username, git.Username), Token: given.Token, KeyFile: given.SSHKeyFile,
		KnownHosts: git.KnownHosts, UserKnownHosts: true,
	}
	if git.CAFile == "" {
		return auth, nil
	}
	file := git.CAFile
	if !filepath.IsAbs(file) {
		file = filepath.Join(repo.Dir, file)
	}
	var err error
	auth.CA, err = os.ReadFile(file)
	return auth, diag.Wrap("read the certificate authorities of the Git remote", err, "spec.git.caFile in fleet.yaml names a PEM file, relative to fleet.yaml")
}
