package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/storage/memory"
)

// CheckPush finds out whether a push to branch would be let through, protected branches included, without moving anything.
//
// It asks for an update of the branch from a commit X to the same X, where the branch is not at X. Servers run their permission
// checks and pre-receive and update hooks on it, then compare the branch with X, and refuse. Such an update cannot take effect
// whatever happens meanwhile: were the branch at X at that very moment, it would stay at X. (A deletion with a wrong old value would
// not do: git takes one whose old commit it does not know for a deletion at any value.) X is the commit of another branch. Where
// there is none, it is a commit without files, sent along; the server then keeps two objects of 200 bytes that nothing refers to,
// until its next garbage collection.
//
// What nil proves: the server is reachable and trusted, the credentials are right and may write, and no hook refuses them the
// branch (GitHub's and GitLab's protected branches, Gitea's, Forgejo's, plain hooks). What it does not prove: rules about the
// content or the authorship of commits; and servers on JGit (Gerrit, Bitbucket Data Center) compare before they run hooks, so there
// only the right to write is known. The real push reports the same typed errors.
//
// Errors match ErrNoPushRight, ErrProtectedBranch, or those of Probe. An answer that is in no known words counts as
// ErrProtectedBranch and is quoted.
func CheckPush(ctx context.Context, url string, auth Auth, branch string) error {
	r, err := openNamed(url, auth)
	if err != nil {
		return err
	}
	op := "check the right to push to " + branch + " of"
	if err := r.checkPush(ctx, branch); err != nil {
		return r.fail(op, err)
	}
	return nil
}

// MayWrite tells whether credentials that read a repository may write to it, as far as the server says before anything is sent: it is asked
// for what a push begins with, and told no more. Hooks and protected branches are not asked, so true is "to some branch, perhaps".
// Errors match those of Probe.
func MayWrite(ctx context.Context, url string, auth Auth) (bool, error) {
	r, err := openNamed(url, auth)
	if err != nil {
		return false, err
	}
	session, _, err := r.openReceive(ctx)
	switch {
	case errors.Is(err, ErrNoPushRight):
		return false, nil
	case err != nil:
		return false, r.fail("ask for the right to write to", err)
	}
	_ = session.Close() // nothing was written to it
	return true, nil
}

func (r *remote) checkPush(ctx context.Context, branch string) error {
	session, refs, err := r.openReceive(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }() // the answer has been read, or there is none
	name := plumbing.NewBranchReferenceName(branch)
	store := memory.NewStorage()
	probe := update{name: name}
	if x := otherBranch(refs, name); !x.IsZero() {
		probe.old, probe.new = x, x
	} else if probe, err = loneCommit(ctx, store, name); err != nil {
		return err
	}
	err = send(ctx, session, refs.Capabilities, store, probe)
	var no *refused
	switch {
	case !errors.As(err, &no):
		return err // nil: the server let an update that changes nothing pass
	case no.unpack != "":
		return fmt.Errorf("%w: %w", ErrNoPushRight, no)
	case stale(no.reason):
		return nil
	}
	return fmt.Errorf("%w %s: %w", ErrProtectedBranch, branch, no)
}

// otherBranch is the commit of a branch that is elsewhere than name; zero if there is none.
func otherBranch(refs *packp.AdvRefs, name plumbing.ReferenceName) plumbing.Hash {
	at := refs.References[name.String()]
	for other, hash := range refs.References {
		if plumbing.ReferenceName(other).IsBranch() && hash != at {
			return hash
		}
	}
	return plumbing.ZeroHash
}

// loneCommit makes a commit without files or parents. Its date is fixed, so that repeated checks send the same two objects.
func loneCommit(ctx context.Context, store *memory.Storage, name plumbing.ReferenceName) (update, error) {
	author := runnerAuthor
	if all, err := userSettings(ctx); err == nil {
		if who, err := all.who("author"); err == nil {
			author = who // rules about authors then judge the one who will push
		}
	}
	tree, err := writeTree(store, map[string]object.TreeEntry{})
	if err != nil {
		return update{}, err
	}
	when := time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
	by := object.Signature{Name: author.Name, Email: author.Email, When: when}
	commit, err := writeCommit(ctx, store, nil, tree, nil, "fleetctl: may this account push here?", identity{by, by})
	if err != nil {
		return update{}, err
	}
	return update{name: name, old: commit, new: commit, objects: []plumbing.Hash{commit, tree}}, nil
}
