package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// CommitOnto commits the changes, and nothing else, to the checked out branch, and brings them into the working tree and the index. base is
// the commit that the changes were made from; "" for a branch without a commit. If somebody has committed since, the error matches
// ErrDiverged. Other edits of the user, on disk or staged, even in the same files, stay uncommitted. If an edit and a change touch the same
// lines, the error is a *DirtyError, and CommitOnto changes nothing. A zero author means the author that git would use. CommitOnto returns
// the branch's commit and whether it is new; it is not new if the last commit already has the changes. Hooks run and the commit is signed
// as git's configuration says; their errors match ErrHook and ErrSigning. After a kill, a call with the same changes completes the commit.
func (r *Repo) CommitOnto(
	ctx context.Context,
	base string,
	changes []Change,
	message string,
	author Author,
) (hash string, made bool, err error) {
	defer func() { // after the locks are released
		if err == nil && made {
			r.committed(ctx, plumbing.NewHash(hash))
		}
	}()
	l, err := r.acquire(ctx)
	if err != nil {
		return "", false, err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	name, head, err := r.head()
	if err != nil {
		return "", false, err
	}
	if head != plumbing.NewHash(base) {
		return "", false, diag.Errorf("run the command again", "%w: somebody has committed to %s in the meantime", ErrMoved, r.dir)
	}
	w, err := r.worktree(ctx)
	if err != nil {
		return "", false, err
	}
	defer w.close()
	commit, err := r.record(ctx, w, l, revision{base: head, parents: []plumbing.Hash{head}, changes: changes, message: message, by: author})
	if err != nil {
		return "", false, diag.Wrap("commit to "+r.dir, err, diag.Hint(err))
	}
	if err := r.place(ctx, w, l, name, head, commit, changes); err != nil {
		return "", false, diag.Wrap("commit to "+r.dir, err, diag.Hint(err))
	}
	if commit.IsZero() {
		return "", false, nil
	}
	return commit.String(), commit != head, nil
}

// revision is a commit to be made.
type revision struct {
	// base is the commit that the changes were made from.
	base    plumbing.Hash
	parents []plumbing.Hash
	changes []Change
	message string
	by      Author
	// apart says that the commit goes to another branch, and that the working tree stays as it is.
	apart bool
}

// record writes the objects of a commit, and no reference to it. It returns the base if nothing changes.
func (r *Repo) record(ctx context.Context, w *worktree, l *lock, v revision) (plumbing.Hash, error) {
	store := r.git.Storer
	base, err := treeOf(store, v.base)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if v.base.IsZero() && len(v.changes) == 0 {
		return v.base, nil
	}
	tree, err := r.tree(ctx, w, base, v.changes)
	if err != nil || tree == base {
		return v.base, err
	}
	if there, err := treeOf(store, v.parents[0]); err != nil || there == tree && v.parents[0] != v.base {
		return v.parents[0], err
	}
	by, err := r.identity(ctx, w.settings, v.by)
	if err != nil {
		return v.base, err
	}
	s, err := newSigner(w.settings, Author{by.committer.Name, by.committer.Email}, "commit.gpgsign")
	if err != nil {
		return v.base, err
	}
	if !v.apart { // refuse conflicts with the working tree before hooks run
		if _, err := r.plan(ctx, w, l, base, tree, v.changes); err != nil {
			return v.base, err
		}
	}
	r.left, r.leftCommit = map[string]diskFile{}, plumbing.ZeroHash
	if v.message, err = w.settings.cleaned(v.message); err != nil {
		return v.base, err
	}
	if tree, v.message, err = r.verify(ctx, w, l, by, tree, v); err != nil || tree == base {
		return v.base, err
	}
	r.leftCommit, err = writeCommit(ctx, store, s, tree, v.parents, v.message, by)
	return r.leftCommit, err
}

// tree writes the tree of base with the changes, after git's conversions for commits.
func (r *Repo) tree(ctx context.Context, w *worktree, base plumbing.Hash, changes []Change) (plumbing.Hash, error) {
	paths := make([]string, 0, len(changes))
	for _, c := range changes {
		if err := checkPath(c.Path); err != nil {
			return plumbing.ZeroHash, err
		}
		if !c.Delete {
			paths = append(paths, c.Path)
		}
	}
	if err := w.conv.Look(ctx, paths...); err != nil {
		return plumbing.ZeroHash, err
	}
	files := &treeFS{store: r.git.Storer, root: base, trees: map[plumbing.Hash]map[string]object.TreeEntry{}}
	converted := slices.Clone(changes)
	for i, c := range changes {
		if c.Delete {
			continue
		}
		var was []byte
		e, err := files.find("read", c.Path)
		if err == nil && e.Mode.IsFile() {
			was, err = readBlob(r.git.Storer, e.Hash)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return plumbing.ZeroHash, fmt.Errorf("read %s: %w", c.Path, err)
		}
		if converted[i].Content, err = w.conv.FromEdit(ctx, c.Path, c.Content, was); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	return applyChanges(r.git.Storer, base, converted)
}

// writeCommit writes the object of a commit, and signs it if there is a signer.
func writeCommit(
	ctx context.Context,
	store storage.Storer,
	s *signer,
	tree plumbing.Hash,
	parents []plumbing.Hash,
	message string,
	by identity,
) (plumbing.Hash, error) {
	c := &object.Commit{Author: by.author, Committer: by.committer, Message: message, TreeHash: tree}
	for _, p := range parents {
		if !p.IsZero() {
			c.ParentHashes = append(c.ParentHashes, p)
		}
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

// place moves the working tree, then the index and then the branch from one commit to another. The next run completes an interrupted one.
// place keeps differences from the first commit. If it cannot keep one of them, the error is a *DirtyError, and place changes nothing.
func (r *Repo) place(
	ctx context.Context,
	w *worktree,
	l *lock,
	branch plumbing.ReferenceName,
	from, to plumbing.Hash,
	intent []Change,
) (err error) {
	if from == to {
		return nil
	}
	fromTree, err := treeOf(r.git.Storer, from)
	if err != nil {
		return err
	}
	toTree, err := treeOf(r.git.Storer, to)
	if err != nil {
		return err
	}
	steps, err := r.plan(ctx, w, l, fromTree, toTree, intent)
	if err != nil {
		return err
	}
	r.keepLeft(steps, to)
	unlock, err := r.lockBranch(ctx, branch, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	t := transaction{refs: []plumbing.ReferenceName{plumbing.HEAD, branch}, from: from, to: to}
	if err := r.transact(ctx, w.settings, t, func() error { return r.carryOut(ctx, w, l, steps, branch, from, to) }); err != nil {
		return err
	}
	r.logMove(ctx, w.settings, branch, from, to, intent != nil)
	return l.finish()
}

// carryOut carries out the steps that place has planned, and moves the branch.
func (r *Repo) carryOut(
	ctx context.Context,
	w *worktree,
	l *lock,
	steps []*step,
	branch plumbing.ReferenceName,
	from, to plumbing.Hash,
) error {
	if err := r.announce(l, steps, branch, to); err != nil {
		return err
	}
	if err := w.apply(ctx, steps); err != nil {
		return err
	}
	w.enter(l, steps)
	if l.changed {
		if err := l.writeIndex(); err != nil {
			return err
		}
	}
	return r.move(branch, from, to)
}

// move sets the branch from one commit to another. It returns an error if the branch is no longer at the first one.
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
