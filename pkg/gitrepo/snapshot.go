package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// Copy returns a folder with the files of the last commit, for reading and for making changes. It has no uncommitted edits, and its files
// have the form of Change.Content. If the working tree is exactly that, Copy returns the working tree. remove removes a copy.
func (r *Repo) Copy(ctx context.Context) (root string, remove func() error, err error) {
	_, head, err := r.head()
	if err != nil {
		return "", nil, err
	}
	return r.copyOf(ctx, head)
}

func (r *Repo) copyOf(ctx context.Context, commit plumbing.Hash) (root string, remove func() error, err error) {
	w, err := r.worktree(ctx)
	if err != nil {
		return "", nil, err
	}
	defer w.close()
	tree, err := treeOf(r.git.Storer, commit)
	if err != nil {
		return "", nil, err
	}
	files, err := diffTrees(ctx, r.git.Storer, plumbing.ZeroHash, tree)
	if err != nil {
		return "", nil, err
	}
	plain, err := w.plain(files)
	if err != nil {
		return "", nil, err
	}
	if plain {
		if is, err := r.isLastCommit(ctx); err != nil || is {
			return r.dir, func() error { return nil }, err
		}
	}
	dir, remove, err := atomicfile.TempFolder("", "commit")
	if err != nil {
		return "", nil, diag.Wrap("make a folder for the files of the last commit", err, "free some space, or set TMPDIR")
	}
	if err := w.writeCopy(ctx, dir, files); err != nil {
		return "", nil, errors.Join(fmt.Errorf("copy commit %s: %w", commit, err), remove())
	}
	return dir, remove, nil
}

// isLastCommit tells whether the working tree has exactly the files of the last commit, apart from ignored files. It is false if git does
// not look at some files, because these may differ or be missing.
func (r *Repo) isLastCommit(ctx context.Context) (bool, error) {
	unseen, err := r.unseen(ctx)
	if err != nil || len(unseen) > 0 {
		return false, err
	}
	dirty, err := r.dirtySeen(ctx)
	return len(dirty) == 0, err
}

// plain tells whether every file has the same form on disk as in a commit.
func (w *worktree) plain(files []treeChange) (bool, error) {
	if w.conv.MayConvert() {
		return false, nil
	}
	seen := map[string]bool{}
	for _, f := range files {
		if dir := path.Dir(f.path); seen[dir] {
			continue
		}
		seen[path.Dir(f.path)] = true
		if plain, err := w.conv.Unmarked(f.path); err != nil || !plain {
			return false, err
		}
	}
	return true, nil
}

// writeCopy writes files of a commit into an empty folder.
func (w *worktree) writeCopy(ctx context.Context, dir string, files []treeChange) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	into := &worktree{root: root, store: w.store}
	defer into.close()
	paths := make([]string, 0, len(files))
	for _, f := range files {
		paths = append(paths, f.path)
	}
	if err := w.conv.Look(ctx, paths...); err != nil {
		return err
	}
	for _, f := range files {
		if err := errors.Join(ctx.Err(), w.copyFile(ctx, into, f)); err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
	}
	return nil
}

func (w *worktree) copyFile(ctx context.Context, into *worktree, f treeChange) error {
	if err := checkPath(f.path); err != nil {
		return err
	}
	name := filepath.FromSlash(f.path)
	if f.to.mode == filemode.Submodule {
		return into.root.MkdirAll(name, 0o700)
	}
	content, err := w.editable(ctx, f)
	if err != nil {
		return err
	}
	if err := into.root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	if f.to.mode == filemode.Symlink {
		if target := filepath.Join(filepath.Dir(name), filepath.FromSlash(string(content))); !filepath.IsLocal(target) ||
			path.IsAbs(string(content)) {
			return nil // the link leads out of the repository
		}
	}
	return into.write(name, content, f.to.mode)
}

// editable returns a file of a commit in the form for editing. If the file has a filter and is unchanged on disk, editable reads the file
// on disk, because the filter may have to download the content.
func (w *worktree) editable(ctx context.Context, f treeChange) ([]byte, error) {
	name := filepath.FromSlash(f.path)
	if w.conv.Filtered(w.conv.Found(f.path)) {
		if info, err := w.root.Lstat(name); err == nil && info.Mode().IsRegular() {
			if same, err := w.anyOf(ctx, f.path, f.to); err == nil && same {
				return w.read(name)
			} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
	}
	return w.conv.ToEdit(ctx, f.path, f.to.hash)
}

// Between returns the changes of files between two commits, in the form for editing. "" stands for the state before the first commit.
func (r *Repo) Between(ctx context.Context, from, to string) ([]manifest.Change, error) {
	w, err := r.worktree(ctx)
	if err != nil {
		return nil, err
	}
	defer w.close()
	var trees [2]plumbing.Hash
	for i, commit := range []string{from, to} {
		if trees[i], err = treeOf(r.git.Storer, plumbing.NewHash(commit)); err != nil {
			return nil, err
		}
	}
	changes, err := diffTrees(ctx, r.git.Storer, trees[0], trees[1])
	if err != nil {
		return nil, fmt.Errorf("compare the commits %s and %s: %w", from, to, err)
	}
	files := make([]manifest.Change, 0, len(changes))
	for _, c := range changes {
		var modes [2]string
		var contents [2][]byte
		for i, f := range []file{c.from, c.to} {
			if modes[i], contents[i], err = w.shown(ctx, c.path, f); err != nil {
				return nil, err
			}
		}
		files = append(files, manifest.Compare(c.path, contents[0], contents[1]).InGit(modes[0], modes[1]))
	}
	return files, nil
}

// shown returns the mode of a file of a commit, and its content in the form for editing; of a submodule the line that git shows. Both are
// empty if there is no file.
func (w *worktree) shown(ctx context.Context, name string, f file) (mode string, content []byte, err error) {
	switch f.mode { //nolint:exhaustive // all others are files with content
	case filemode.Empty:
		return "", nil, nil
	case filemode.Submodule:
		content = []byte("Subproject commit " + f.hash.String() + "\n")
	case filemode.Symlink:
		content, err = readBlob(w.store, f.hash)
	default:
		content, err = w.conv.ToEdit(ctx, name, f.hash)
	}
	return fmt.Sprintf("%06o", uint32(f.mode)), content, err
}
