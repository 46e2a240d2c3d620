package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage"
)

// push moves the remote branch from known to commit. known is an ancestor of commit. If the remote branch is no longer at known, the error
// matches ErrNonFastForward.
func (r *remote) push(ctx context.Context, repo *Repo, t *tracking, commit, known plumbing.Hash) error {
	const verb = "push to"
	name := plumbing.NewBranchReferenceName(t.branch)
	if err := repo.verifyPush(ctx, t.remote, t.to.url, t.local(commit), commit, name, known); err != nil {
		return err
	}
	objects, err := missing(ctx, repo.git.Storer, commit, known)
	if err != nil {
		return fmt.Errorf("find what to push from %s: %w", repo.dir, err)
	}
	if err := r.moveBranch(ctx, verb, t.branch, repo.git.Storer, update{old: known, new: commit, objects: objects}); err != nil {
		return err
	}
	return repo.remember(ctx, t.ref, commit)
}

// moveBranch asks the server for one update of a branch. If the branch is not at u.old, the error matches ErrNonFastForward. verb is the
// operation, for errors.
func (r *remote) moveBranch(ctx context.Context, verb, branch string, store storage.Storer, u update) error {
	r = r.pushTo()
	session, refs, err := r.openReceive(ctx)
	if err != nil {
		return r.fail(verb, err)
	}
	defer func() { _ = session.Close() }() // the answer has been read, or there is none
	u.name = plumbing.NewBranchReferenceName(branch)
	if at := refs.References[u.name.String()]; at != u.old {
		return r.fail(verb, fmt.Errorf("%w: %s is at %s", ErrNonFastForward, branch, at))
	}
	err = send(ctx, session, refs.Capabilities, store, u)
	if no, ok := errors.AsType[*refused](err); ok {
		return r.fail(verb, r.whyRefused(ctx, branch, u.old, no))
	}
	if err != nil {
		return r.fail(verb, err)
	}
	return nil
}

// pushTo returns the remote to which git pushes.
func (r *remote) pushTo() *remote {
	if r.pushes != nil {
		return r.pushes
	}
	return r
}

// openReceive opens a session that writes. If the server refuses this, but lets the same credentials read, the error matches
// ErrNoPushRight.
func (r *remote) openReceive(ctx context.Context) (transport.ReceivePackSession, *packp.AdvRefs, error) {
	session, err := r.receive(ctx)
	if err != nil {
		return nil, nil, err
	}
	refs, err := advertised(ctx, session)
	if err == nil {
		return session, refs, nil
	}
	_ = session.Close() // the first error is the cause
	if ctx.Err() == nil && r.readable(ctx) {
		err = fmt.Errorf("%w: %w", ErrNoPushRight, &neutral{err})
	}
	return nil, nil, err
}

// neutral keeps the text of an error and hides its type: if the credentials can read, the server's "authentication required" for a push is
// not ErrAuth.
type neutral struct{ err error }

func (n *neutral) Error() string { return n.err.Error() }

// readable tells whether the same credentials can read the repository.
func (r *remote) readable(ctx context.Context) bool {
	session, err := r.upload(ctx)
	if err != nil {
		return false
	}
	defer func() { _ = session.Close() }() // everything has been read
	_, err = advertised(ctx, session)
	return err == nil
}

// whyRefused finds out whether the push lost a race or was refused. It reads the branch again, because the server's answer is only prose.
func (r *remote) whyRefused(ctx context.Context, branch string, known plumbing.Hash, no *refused) error {
	session, err := r.upload(ctx)
	if err != nil {
		return no
	}
	defer func() { _ = session.Close() }() // everything has been read
	refs, err := advertised(ctx, session)
	if err != nil {
		return no
	}
	switch at := refs.References[plumbing.NewBranchReferenceName(branch).String()]; {
	case at != known:
		return fmt.Errorf("%w: %s is at %s", ErrNonFastForward, branch, at)
	case stale(no.reason):
		return fmt.Errorf("%w: %w", ErrNonFastForward, no) // another push holds the lock of the branch
	case no.unpack != "":
		return no
	}
	return fmt.Errorf("%w %s: %w", ErrProtectedBranch, branch, no)
}

// stale tells whether the reason in a server's report means that the reference was not at the expected commit. The protocol has no codes.
// These are the words of git (receive-pack and its reference backends) and of JGit.
func stale(reason string) bool {
	for _, word := range []string{
		"failed to update ref", "failed to lock", "failed to write", "cannot lock ref", "reference already exists",
		"incorrect old value provided", "reference does not exist", "remote ref does not exist", "fetch first", "non-fast-forward",
		"invalid old id sent", "no such ref", "stale info", "lock error",
	} {
		if strings.HasPrefix(strings.ToLower(reason), word) {
			return true
		}
	}
	return false
}
