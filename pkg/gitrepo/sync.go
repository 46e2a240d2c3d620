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

// syncAttempts bounds the attempts of Sync if others push at the same time. syncBackoff is the longest pause after the first attempt; it
// doubles each time.
const (
	syncAttempts = 6
	syncBackoff  = 200 * time.Millisecond
	// maxHaves is the number of local commits that a fetch names to the server, which looks for the newest common one.
	maxHaves = 256
)

// Intent works out the changes from the files at root, which are the files of the newest commit: see Copy. It is called again if somebody
// else pushed in between. It must not write below root.
type Intent func(root string) ([]Change, error)

// Synced is what Sync did.
type Synced struct {
	// Commit that the local and the remote branch are at.
	Commit string
	// Base is the commit that the intent was applied to; "" if there was none.
	Base string
	// Made says that the intent needed a new commit.
	Made bool
	// Pushed says that Sync moved the remote branch, maybe only for earlier local commits.
	Pushed bool
	// Attempts is the number of attempts. More than one means that others pushed at the same time.
	Attempts int
}

// Sync commits the intent and pushes it to the remote branch. It fetches, brings the working tree up to date, applies the intent, and
// pushes. If somebody else was faster, it repeats all of this a few times; it never forces a push. The local branch gets the new commit
// only once the remote has it. So a kill leaves either nothing, or a local branch that is behind, which the next call repairs. Sync also
// pushes earlier local commits. Errors: *DirtyError (an update would overwrite uncommitted changes), ErrDiverged, ErrProtectedBranch,
// ErrNoPushRight, ErrNonFastForward (others were faster at every attempt), ErrBusy, ErrDetached, those of Probe, and those of the intent.
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
	// The remote has the commit. From here on, a cancelled context must not interrupt the update of the working tree.
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

// settle moves the local branch, the index and the working tree to the commit that the remote has.
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
		// Another command in the same clone may have fetched the commit, and more, since it was pushed.
		if h, err := newHistory(r.git.Storer); err == nil {
			if where, err := h.relate(ctx, commit, head); err == nil && (where == same || where == behind) {
				return nil
			}
		}
		return diag.Errorf("git pull --rebase", "%w: somebody has committed to %s in the meantime", ErrDiverged, r.dir)
	}
	w, err := r.worktree(ctx)
	if err != nil {
		return err
	}
	defer w.close()
	return r.place(ctx, w, l, name, base, commit, changes)
}

// CatchUp brings the checked out branch and the working tree up to date with the remote. Local commits and uncommitted changes stay.
// Errors: *DirtyError (it would overwrite uncommitted changes), ErrDiverged, ErrBusy, ErrDetached, and those of Probe.
func (r *Repo) CatchUp(ctx context.Context, auth Auth) error {
	t, remote, err := r.remote(auth)
	if err != nil {
		return err
	}
	_, _, err = r.catchUp(ctx, t, remote)
	return err
}

// CheckCatchUp fetches, and returns the errors of CatchUp except *DirtyError. The checked out branch and the working tree stay as they are.
func (r *Repo) CheckCatchUp(ctx context.Context, auth Auth) error {
	t, remote, err := r.remote(auth)
	if err != nil {
		return err
	}
	_, _, _, err = r.compare(ctx, t, remote)
	return err
}

// catchUp fetches, and fast-forwards the local branch if it is behind. It returns the local commit to build on, and the commit of the
// remote branch. Both may be zero.
func (r *Repo) catchUp(ctx context.Context, t *tracking, remote *remote) (base, known plumbing.Hash, err error) {
	head, known, isBehind, err := r.compare(ctx, t, remote)
	if err != nil || !isBehind {
		return head, known, err
	}
	return known, known, r.fastForward(ctx, known)
}

// compare fetches, and compares the local branch with the remote branch. It returns the commits of both, and whether the local branch is
// behind. Local and remote branches that have diverged are an error.
func (r *Repo) compare(ctx context.Context, t *tracking, remote *remote) (head, known plumbing.Hash, isBehind bool, err error) {
	if _, head, err = r.head(); err != nil {
		return head, known, false, err
	}
	if known, err = r.fetch(ctx, t, remote, head); err != nil {
		return head, known, false, err
	}
	h, err := newHistory(r.git.Storer)
	if err != nil {
		return head, known, false, err
	}
	where, err := h.relate(ctx, head, known)
	if err == nil && where == diverged {
		err = diag.Errorf("git pull --rebase, then run the command again", "%w in %s", ErrDiverged, r.dir)
	}
	return head, known, where == behind, err
}

// Includes tells whether the commit newer is, or descends from, the commit older. Both are full hashes. If the repository lacks newer and
// has a remote, Includes fetches first. A commit that the remote branch lacks too includes nothing.
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

// Shallow tells whether this repository lacks the older part of the remote's history. If it does, a false result of Includes may be wrong.
func (r *Repo) Shallow() (bool, error) {
	ends, err := r.git.Storer.Shallow()
	if err != nil {
		return false, fmt.Errorf("look where the history of %s ends: %w", r.dir, err)
	}
	return len(ends) > 0, nil
}

// has tells whether the repository has an object.
func (r *Repo) has(hash plumbing.Hash) bool { return r.git.Storer.HasEncodedObject(hash) == nil }

// fetch updates the remote-tracking branch, and returns its commit.
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

// haves returns commits of this repository, newest first, among which the server finds a common one.
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

// fastForward moves the checked out branch and the working tree to a descendant of the branch's commit.
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
