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

// CheckPush finds out whether the server would accept a push to branch, also with protected branches. It changes no branch.
//
// It asks the server to update the branch from a commit X to the same X, although the branch is not at X. Servers first run their
// permission checks and their pre-receive and update hooks. Then they compare the branch with X, and refuse the update. The update can
// never change the branch: if the branch were at X at that moment, it would stay at X. (A deletion with a wrong old value would be
// dangerous: if git does not know the old commit, it deletes the branch at any value.) X is the commit of another branch. If there is no
// other branch, X is a commit without files, which CheckPush sends along. The server then keeps two objects of 200 bytes that nothing
// refers to, until its next garbage collection.
//
// A nil error proves that the server is reachable and trusted, that the credentials are valid and may write, and that no hook refuses
// the branch (protected branches of GitHub, GitLab, Gitea and Forgejo, and plain hooks). It proves nothing about rules for the content
// or the authors of commits. Servers on JGit (Gerrit, Bitbucket Data Center) compare before they run hooks, so there it proves only the
// right to write. The real push reports the same typed errors.
//
// Errors match ErrNoPushRight, ErrProtectedBranch, or those of Probe. An answer in unknown words counts as ErrProtectedBranch, and the
// error quotes it.
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

// CheckPush is the function CheckPush for the address to which git pushes the checked out branch. branch is a branch there, and "" is the
// one to which git pushes. The error also says that git would push elsewhere, or to several addresses.
func (r *Repo) CheckPush(ctx context.Context, auth Auth, branch string) error {
	t, remote, err := r.remote(auth)
	if err != nil {
		return err
	}
	if branch == "" {
		branch, err = t.branch, t.checkPush()
	} else {
		err = t.checkAddresses()
	}
	if err != nil {
		return err
	}
	to := remote.pushTo()
	if err := to.checkPush(ctx, branch); err != nil {
		return to.fail("check the right to push to "+branch+" of", err)
	}
	return nil
}

// MayWrite tells whether credentials that read a repository may also write to it. It makes only the first request of a push, and sends
// nothing. Hooks and protected branches do not see this request, so true means that a push to some branch may succeed. Errors match those
// of Probe.
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
	_ = session.Close() // nothing was written, so an error does not matter
	return true, nil
}

func (r *remote) checkPush(ctx context.Context, branch string) error {
	session, refs, err := r.openReceive(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }() // the answer has been read, so an error does not matter
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
		return err // nil: the server accepted the update, which changes nothing
	case no.unpack != "":
		return fmt.Errorf("%w: %w", ErrNoPushRight, no)
	case stale(no.reason):
		return nil
	}
	return fmt.Errorf("%w %s: %w", ErrProtectedBranch, branch, no)
}

// otherBranch returns the commit of a branch that is at another commit than name; zero if there is none.
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
			author = who // so that rules about authors judge the author of the later push
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
