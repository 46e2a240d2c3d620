package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// syncAttempts bounds how often Sync meets somebody who was faster; syncBackoff is the longest first pause, doubled each time.
const (
	syncAttempts = 6
	syncBackoff  = 200 * time.Millisecond
	// maxHaves is how many commits of ours the server is told about when it looks for the newest common one.
	maxHaves = 256
)

// Intent works out the changes from the files at root, which are the files of the newest commit: see Copy. It is called again if somebody
// else pushed in between. It must not write below root.
type Intent func(root string) ([]Change, error)

// Synced is what Sync did.
type Synced struct {
	// Commit that the local and the remote branch are at.
	Commit string
	// Base is the commit that the intent was applied to, "" where there was none.
	Base string
	// Made: a new commit was needed for the intent.
	Made bool
	// Pushed: the remote branch was moved, be it for commits that were here already.
	Pushed bool
	// Attempts it took; more than one means that others pushed meanwhile.
	Attempts int
}

// Sync makes the remote branch contain the intent: fetch, bring the working tree up to date, apply, push; if somebody else was
// faster, all of it again, a few times, never with force. The new commit appears in the local branch only once the remote has it, so
// a kill leaves either nothing, or a local branch that is behind, which the next call repairs. Local commits that are not pushed yet
// go along. Errors: *DirtyError (an update would overwrite changes in no commit), ErrDiverged, ErrProtectedBranch, ErrNoPushRight,
// ErrNonFastForward (every attempt lost), ErrBusy, ErrDetached, those of Probe, and the intent's own.
func (r *Repo) Sync(ctx context.Context, auth Auth, intent Intent, message string, author Author) (*Synced, error) {
	t, remote, err := r.remote(auth)
	if err == nil {
		err = t.checkPush()
	}
	if err != nil {
		return nil, err
	}
	pause := syncBackoff
	for attempt := 1; ; attempt++ {
		done, err := r.syncOnce(ctx, t, remote, intent, message, author)
		if err == nil {
			done.Attempts = attempt
			return done, nil
		}
		if !errors.Is(err, ErrNonFastForward) || attempt == syncAttempts {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause/2 + rand.N(pause)): //nolint:gosec // jitter, so that two do not collide again
		}
		pause *= 2
	}
}

func (r *Repo) syncOnce(ctx context.Context, t *tracking, remote *remote, intent Intent, message string, author Author) (*Synced, error) {
	base, known, err := r.catchUp(ctx, t, remote)
	if err != nil {
		return nil, err
	}
	changes, err := r.intended(ctx, base, intent)
	if err != nil {
		return nil, err
	}
	commit, err := r.recordApart(ctx, revision{base: base, parents: []plumbing.Hash{base}, changes: changes, message: message, by: author})
	if err != nil {
		return nil, diag.Wrap("commit to "+r.dir, err, diag.Hint(err))
	}
	if commit.IsZero() {
		return &Synced{}, nil
	}
	done := &Synced{Commit: commit.String(), Made: commit != base, Pushed: commit != known}
	if !base.IsZero() {
		done.Base = base.String()
	}
	if done.Pushed {
		if err := remote.push(ctx, r, t, commit, known); err != nil {
			return nil, err
		}
	}
	// The remote has it: from here on a cancelled context must not leave the working tree half-way.
	ctx = context.WithoutCancel(ctx)
	if err := r.settle(ctx, base, commit, changes); err != nil {
		return done, err
	}
	if done.Made {
		r.committed(ctx, commit)
	}
	return done, nil
}

// intended calls an intent with the files of a commit.
func (r *Repo) intended(ctx context.Context, base plumbing.Hash, intent Intent) (changes []Change, err error) {
	root, remove, err := r.copyOf(ctx, base)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	return intent(root)
}

// recordApart is record for a commit that reaches the working tree later, if at all.
func (r *Repo) recordApart(ctx context.Context, v revision) (commit plumbing.Hash, err error) {
	l, err := r.acquire(ctx)
	if err != nil {
		return commit, err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	w, err := r.worktree(ctx)
	if err != nil {
		return commit, err
	}
	defer w.close()
	return r.record(ctx, w, l, v)
}

// settle brings the local side to the commit that the remote has.
func (r *Repo) settle(ctx context.Context, base, commit plumbing.Hash, changes []Change) (err error) {
	l, err := r.acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	name, head, err := r.head()
	if err != nil {
		return err
	}
	if head != base {
		return diag.Errorf("git pull --rebase", "%w: somebody committed to %s meanwhile", ErrDiverged, r.dir)
	}
	w, err := r.worktree(ctx)
	if err != nil {
		return err
	}
	defer w.close()
	return r.place(ctx, w, l, name, base, commit, changes)
}

// CatchUp brings the checked out branch and the working tree up to date with the remote. Commits that are here alone, and changes in no
// commit, stay. Errors: *DirtyError (it would overwrite such changes), ErrDiverged, ErrBusy, ErrDetached, and those of Probe.
func (r *Repo) CatchUp(ctx context.Context, auth Auth) error {
	t, remote, err := r.remote(auth)
	if err != nil {
		return err
	}
	_, _, err = r.catchUp(ctx, t, remote)
	return err
}

// catchUp fetches, and fast-forwards the local branch if it is behind. It returns the local commit to build on, and what the remote
// branch is at; both may be zero.
func (r *Repo) catchUp(ctx context.Context, t *tracking, remote *remote) (base, known plumbing.Hash, err error) {
	_, head, err := r.head()
	if err != nil {
		return base, known, err
	}
	known, err = r.fetch(ctx, t, remote, head)
	if err != nil {
		return base, known, err
	}
	h, err := newHistory(r.git.Storer)
	if err != nil {
		return base, known, err
	}
	where, err := h.relate(ctx, head, known)
	switch {
	case err != nil:
		return base, known, err
	case where == diverged:
		return base, known, diag.Errorf("git pull --rebase, then run the command again", "%w in %s", ErrDiverged, r.dir)
	case where == behind:
		return known, known, r.fastForward(ctx, known)
	}
	return head, known, nil
}

// Includes tells whether the commit newer is, or builds on, the commit older; both are full hashes. A newer that is not here is fetched
// first, if there is a remote; one that its branch does not have either does not include anything.
func (r *Repo) Includes(ctx context.Context, auth Auth, newer, older string) (bool, error) {
	to, from := plumbing.NewHash(newer), plumbing.NewHash(older)
	if !r.has(to) {
		t, err := r.tracking()
		if err != nil || t.url == "" {
			return false, err
		}
		remote, err := t.open(auth)
		if err != nil {
			return false, err
		}
		if _, err := r.fetch(ctx, t, remote, from); err != nil {
			return false, err
		}
		if !r.has(to) {
			return false, nil
		}
	}
	h, err := newHistory(r.git.Storer)
	if err != nil {
		return false, err
	}
	where, err := h.relate(ctx, to, from)
	return where == same || where == ahead, err
}

// Shallow tells whether the history ends here before it ends at the remote: then what Includes does not find may be there all the same.
func (r *Repo) Shallow() (bool, error) {
	ends, err := r.git.Storer.Shallow()
	if err != nil {
		return false, fmt.Errorf("look where the history of %s ends: %w", r.dir, err)
	}
	return len(ends) > 0, nil
}

// has tells whether an object is here.
func (r *Repo) has(hash plumbing.Hash) bool { return r.git.Storer.HasEncodedObject(hash) == nil }

// fetch updates what is known here of the remote branch and returns it.
func (r *Repo) fetch(ctx context.Context, t *tracking, remote *remote, head plumbing.Hash) (plumbing.Hash, error) {
	haves, err := r.haves(ctx, t, head)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	got, err := remote.fetch(ctx, r.git.Storer, t.branch, haves)
	if err != nil {
		return plumbing.ZeroHash, remote.fail("fetch from", err)
	}
	if got.head.IsZero() {
		return got.head, nil
	}
	return got.head, r.remember(ctx, t.ref, got.head)
}

// haves are commits that are here, newest first, so that the server can find a common one.
func (r *Repo) haves(ctx context.Context, t *tracking, head plumbing.Hash) ([]plumbing.Hash, error) {
	known, err := r.reference(t.ref)
	if err != nil {
		return nil, err
	}
	h, err := newHistory(r.git.Storer)
	if err != nil {
		return nil, err
	}
	seen := map[plumbing.Hash]bool{}
	var haves []plumbing.Hash
	for _, from := range []plumbing.Hash{known, head} {
		if from.IsZero() || r.git.Storer.HasEncodedObject(from) != nil {
			continue
		}
		for s := h.search(from); !s.exhausted() && len(haves) < maxHaves; {
			at := s.queue[0]
			if !seen[at] && r.git.Storer.HasEncodedObject(at) == nil {
				seen[at] = true
				haves = append(haves, at)
			}
			if _, err := s.step(plumbing.ZeroHash); err != nil {
				return nil, errors.Join(ctx.Err(), err)
			}
		}
	}
	return haves, nil
}

// fastForward brings the checked out branch and the working tree to a commit that it is behind of.
func (r *Repo) fastForward(ctx context.Context, to plumbing.Hash) (err error) {
	l, err := r.acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	name, head, err := r.head()
	if err != nil {
		return err
	}
	w, err := r.worktree(ctx)
	if err != nil {
		return err
	}
	defer w.close()
	if err := r.place(ctx, w, l, name, head, to, nil); err != nil {
		return diag.Wrap("bring "+r.dir+" up to date", err, diag.Hint(err))
	}
	return nil
}
