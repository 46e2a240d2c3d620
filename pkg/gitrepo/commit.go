package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage"
)

// Author of a commit.
type Author struct{ Name, Email string }

// defaultAuthor commits where the user has told git no name.
var defaultAuthor = Author{Name: "fleetctl", Email: "fleetctl@localhost"}

// Author is who the commits of this repository are by: user.name and user.email of the git configuration, else fleetctl.
func (r *Repo) Author() (Author, error) {
	cfg, err := r.git.ConfigScoped(config.SystemScope)
	if err != nil {
		return Author{}, fmt.Errorf("read the git configuration: %w", err)
	}
	return authorOf(cfg), nil
}

func authorOf(cfg *config.Config) Author {
	a := Author{Name: cfg.User.Name, Email: cfg.User.Email}
	if a.Name == "" {
		a.Name = defaultAuthor.Name
	}
	if a.Email == "" {
		a.Email = defaultAuthor.Email
	}
	return a
}

// Commit writes the changes into the working tree and commits them, and nothing else, to the checked out branch. What else is
// staged or dirty stays so. author is r.Author() if zero. It returns the branch's commit and whether it is a new one: changes
// that are in the last commit already make none. It is signed where git signs commits; where that fails, the error matches ErrSigning. After a kill, calling it again with the same changes completes it.
func (r *Repo) Commit(ctx context.Context, changes []Change, message string, author Author) (hash string, made bool, err error) {
	if author == (Author{}) {
		if author, err = r.Author(); err != nil {
			return "", false, err
		}
	}
	l, err := r.acquire(ctx)
	if err != nil {
		return "", false, err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	name, head, err := r.head()
	if err != nil {
		return "", false, err
	}
	commit, err := r.record(ctx, head, changes, message, author)
	if err != nil {
		return "", false, fmt.Errorf("commit to %s: %w", r.dir, err)
	}
	if err := r.place(ctx, l, name, head, commit, changes); err != nil {
		return "", false, fmt.Errorf("commit to %s: %w", r.dir, err)
	}
	if commit.IsZero() {
		return "", false, nil
	}
	return commit.String(), commit != head, nil
}

// record writes the objects of a commit on top of parent; nothing refers to them yet. It returns parent if nothing changes.
func (r *Repo) record(ctx context.Context, parent plumbing.Hash, changes []Change, message string, author Author) (plumbing.Hash, error) {
	store := r.git.Storer
	base, err := treeOf(store, parent)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if parent.IsZero() && len(changes) == 0 {
		return parent, nil
	}
	tree, err := applyChanges(store, base, changes)
	if err != nil || tree == base {
		return parent, err
	}
	s, err := r.signer(ctx, author, "commit.gpgsign")
	if err != nil {
		return parent, err
	}
	return writeCommit(ctx, store, s, tree, parent, message, author, time.Now())
}

// writeCommit writes the object of a commit, signed where there is a signer.
func writeCommit(ctx context.Context, store storage.Storer, s *signer, tree, parent plumbing.Hash, message string, author Author, when time.Time) (plumbing.Hash, error) {
	signature := object.Signature{Name: author.Name, Email: author.Email, When: when}
	c := &object.Commit{Author: signature, Committer: signature, Message: strings.TrimRight(message, "\n") + "\n", TreeHash: tree}
	if !parent.IsZero() {
		c.ParentHashes = []plumbing.Hash{parent}
	}
	var err error
	if c.PGPSignature, err = signObject(ctx, s, c); err != nil {
		return plumbing.ZeroHash, err
	}
	o := store.NewEncodedObject()
	if err := c.Encode(o); err != nil {
		return plumbing.ZeroHash, err
	}
	return saveObject(store, o)
}

// place brings working tree, index and branch from one commit to another, in this order: whatever is cut short is done again
// by the next run. The paths in intent are written even where they hold changes in no commit; those are what the intent was
// made from.
func (r *Repo) place(ctx context.Context, l *lock, branch plumbing.ReferenceName, from, to plumbing.Hash, intent []Change) error {
	store := r.git.Storer
	fromTree, err := treeOf(store, from)
	if err != nil {
		return err
	}
	toTree, err := treeOf(store, to)
	if err != nil {
		return err
	}
	changes, err := diffTrees(ctx, store, fromTree, toTree)
	if err != nil {
		return err
	}
	w, err := r.worktree()
	if err != nil {
		return err
	}
	defer w.close()
	if err := checkDirty(ctx, w, l, without(changes, intent)); err != nil {
		return err
	}
	if changes, err = withIntent(store, toTree, changes, intent); err != nil {
		return err
	}
	if err := w.apply(ctx, l, changes); err != nil {
		return err
	}
	if l.changed {
		if err := l.writeIndex(); err != nil {
			return err
		}
	}
	if from == to {
		return nil
	}
	return r.move(branch, from, to)
}

// move sets the branch to another commit, if it is where it was.
func (r *Repo) move(branch plumbing.ReferenceName, from, to plumbing.Hash) error {
	var old *plumbing.Reference
	if !from.IsZero() {
		old = plumbing.NewHashReference(branch, from)
	}
	if err := r.git.Storer.CheckAndSetReference(plumbing.NewHashReference(branch, to), old); err != nil {
		return fmt.Errorf("set %s: %w", branch.Short(), err)
	}
	return nil
}

// checkDirty returns *DirtyError if one of the paths has changes, on disk or staged, that are in no commit.
func checkDirty(ctx context.Context, w *worktree, l *lock, changes []treeChange) error {
	dirty, err := w.conflicts(ctx, changes)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if e := l.entries[c.path]; e != nil && e.Hash != c.from.hash && e.Hash != c.to.hash && !e.Hash.IsZero() {
			dirty = append(dirty, c.path)
		}
	}
	return dirtyError(dirty)
}

// without leaves out the changes whose paths are in intent.
func without(changes []treeChange, intent []Change) []treeChange {
	paths := map[string]bool{}
	for _, c := range intent {
		paths[c.Path] = true
	}
	var rest []treeChange
	for _, c := range changes {
		if !paths[c.path] {
			rest = append(rest, c)
		}
	}
	return rest
}

// withIntent adds the paths of intent that do not differ between the commits: on disk they may.
func withIntent(store storage.Storer, tree plumbing.Hash, changes []treeChange, intent []Change) ([]treeChange, error) {
	seen := map[string]bool{}
	for _, c := range changes {
		seen[c.path] = true
	}
	for _, c := range intent {
		if seen[c.Path] {
			continue
		}
		seen[c.Path] = true
		if c.Delete {
			changes = append(changes, treeChange{path: c.Path})
			continue
		}
		root, err := object.GetTree(store, tree)
		if err != nil {
			return nil, err
		}
		e, err := root.FindEntry(c.Path)
		if err != nil {
			return nil, err
		}
		changes = append(changes, treeChange{path: c.Path, from: file{e.Mode, e.Hash}, to: file{e.Mode, e.Hash}})
	}
	return changes, nil
}
