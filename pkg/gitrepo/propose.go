package gitrepo

import (
	"context"
	"errors"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// ErrUnpushed says that the checked out branch has commits that the remote lacks.
var ErrUnpushed = errors.New("there are commits that are not pushed")

// Propose pushes the intent, on top of the checked out branch, to another branch of the remote, for a review. It brings the working tree
// up to date with the checked out branch, and leaves it without the change. If the other branch exists, it gets one more commit, which
// replaces the branch's earlier intent; Propose never forces a push. Made and Pushed are false if the intent changes nothing, or if the
// branch has it already. Errors are those of Sync, and ErrUnpushed for local commits that the other branch would include.
func (r *Repo) Propose(ctx context.Context, auth Auth, branch string, intent Intent, message string, author Author) (*Synced, error) {
	t, remote, err := r.remote(auth)
	if err == nil {
		err = t.checkAddresses()
	}
	if err != nil {
		return nil, err
	}
	if branch == t.branch {
		return nil, diag.Usage("choose another name", "%s is the branch into which the change will be merged", branch)
	}
	base, known, err := r.catchUp(ctx, t, remote)
	if err != nil {
		return nil, err
	}
	if base != known {
		return nil, diag.Errorf("push these commits, or move them to another branch", "%w: %s of %s", ErrUnpushed, t.branch, r.dir)
	}
	changes, err := r.intended(ctx, base, intent)
	if err != nil {
		return nil, err
	}
	other := &tracking{address: t.address, to: t.to, remote: t.remote, branch: branch, ref: plumbing.NewRemoteReferenceName(t.remote, branch)}
	there, err := r.fetch(ctx, other, remote, base)
	if err != nil {
		return nil, err
	}
	commit, err := r.proposal(ctx, base, there, changes, message, author)
	if err != nil {
		return nil, diag.Wrap("commit to "+branch, err, diag.Hint(err))
	}
	switch commit {
	case base:
		return &Synced{Commit: base.String(), Base: base.String()}, nil
	case there:
		return &Synced{Commit: there.String(), Base: base.String()}, nil
	}
	if err := remote.push(ctx, r, other, commit, there); err != nil {
		return nil, err
	}
	return &Synced{Commit: commit.String(), Base: base.String(), Made: true, Pushed: true, Attempts: 1}, nil
}

// proposal writes the commit. Its parent is base, or, if base does not have the commits of the existing branch, that branch, merged with
// base if needed. It returns base if nothing changes, and the commit of the existing branch if that has the intent already.
func (r *Repo) proposal(
	ctx context.Context,
	base, there plumbing.Hash,
	changes []Change,
	message string,
	author Author,
) (plumbing.Hash, error) {
	h, err := newHistory(r.git.Storer)
	if err != nil {
		return base, err
	}
	where, err := h.relate(ctx, there, base)
	if err != nil {
		return base, err
	}
	v := revision{base: base, parents: []plumbing.Hash{there}, changes: changes, message: message, by: author, apart: true}
	switch where {
	case behind, same: // the branch does not exist, or has been merged
		v.parents = []plumbing.Hash{base}
	case diverged:
		v.parents = append(v.parents, base)
	}
	return r.recordApart(ctx, v)
}
