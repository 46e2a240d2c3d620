package gitrepo

import (
	"context"
	"errors"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// ErrUnpushed says that the checked out branch has commits that the remote lacks.
var ErrUnpushed = errors.New("there are commits that are not pushed")

// Propose makes a branch of the remote hold the intent on top of the checked out branch, so that somebody can review it first. The working
// tree is brought up to date and otherwise stays as it is: only the other branch has the change. An existing branch gets one more commit,
// and is never forced: this commit replaces the branch's earlier intent. Made and Pushed are false if the intent changes nothing, or the
// branch holds it already. Errors are those of Sync, and ErrUnpushed for local commits that the branch would carry along.
func (r *Repo) Propose(ctx context.Context, auth Auth, branch string, intent Intent, message string, author Author) (*Synced, error) {
	t, remote, err := r.remote(auth)
	if err == nil {
		err = t.checkAddresses()
	}
	if err != nil {
		return nil, err
	}
	if branch == t.branch {
		return nil, diag.Usage("choose another name", "%s is the branch that the change is for", branch)
	}
	base, known, err := r.catchUp(ctx, t, remote)
	if err != nil {
		return nil, err
	}
	if base != known {
		return nil, diag.Errorf("push them, or put them aside", "%w: %s of %s", ErrUnpushed, t.branch, r.dir)
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

// proposal writes the commit: on base, or on the branch that is there if base does not have it yet, which it then takes along. It returns
// base where nothing changes, and there where that has it all.
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
	case behind, same: // there is none, or it has been merged
		v.parents = []plumbing.Hash{base}
	case diverged:
		v.parents = append(v.parents, base)
	}
	return r.recordApart(ctx, v)
}
