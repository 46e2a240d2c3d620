package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// unseen returns the files of the index that git does not look at, sorted: those marked as assume-unchanged or skip-worktree. `git status`
// does not show their changes.
func (r *Repo) unseen(ctx context.Context) ([]string, error) {
	if gitProgram() != "" {
		out, err := r.runGit(ctx, nil, nil, "ls-files", "-v", "-z")
		if err != nil {
			return nil, fmt.Errorf("look at the index of %s: %w", r.dir, err)
		}
		return unseenFiles(string(out)), nil
	}
	l := &lock{gitDir: r.gitDir}
	if err := l.readIndex(); err != nil {
		return nil, err
	}
	var unseen []string
	for name, e := range l.entries {
		if e.SkipWorktree || l.assumed[name] {
			unseen = append(unseen, name)
		}
	}
	slices.Sort(unseen)
	return unseen, nil
}

// unseenFiles returns the files with such a mark in the output of `git ls-files -v -z`, which has a letter, a blank and a name for each
// file. A lower-case letter means assume-unchanged, and S or s means skip-worktree.
func unseenFiles(out string) []string {
	var unseen []string
	for entry := range strings.SplitSeq(out, "\x00") {
		mark, name, ok := strings.Cut(entry, " ")
		if ok && (mark == "S" || mark != strings.ToUpper(mark)) {
			unseen = append(unseen, name)
		}
	}
	slices.Sort(unseen)
	return slices.Compact(unseen)
}

// dirtyUnseen returns the unseen files whose content in the working tree differs from the last commit. It leaves out files that are missing
// in the working tree, because they may belong to a sparse checkout.
func (r *Repo) dirtyUnseen(ctx context.Context) ([]string, error) {
	unseen, err := r.unseen(ctx)
	if err != nil || len(unseen) == 0 {
		return nil, err
	}
	w, err := r.worktree(ctx)
	if err != nil {
		return nil, err
	}
	defer w.close()
	_, head, err := r.head()
	if err != nil {
		return nil, err
	}
	tree, err := treeOf(r.git.Storer, head)
	if err != nil {
		return nil, err
	}
	committed := &treeFS{store: r.git.Storer, root: tree, trees: map[plumbing.Hash]map[string]object.TreeEntry{}}
	var dirty []string
	for _, p := range unseen {
		same, err := w.asCommitted(ctx, committed, p)
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", p, err)
		}
		if !same {
			dirty = append(dirty, p)
		}
	}
	return dirty, nil
}

// asCommitted tells whether the file at p is the same as in the commit, or is missing in the working tree.
func (w *worktree) asCommitted(ctx context.Context, commit *treeFS, p string) (bool, error) {
	if err := checkPath(p); err != nil {
		return false, err
	}
	e, err := commit.find("read", p)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if e.Mode == filemode.Submodule {
		return true, nil
	}
	return w.anyOf(ctx, p, file{e.Mode, e.Hash})
}
