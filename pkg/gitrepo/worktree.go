package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/storage"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/internal/conversion"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// worktree is a working tree on disk. All access goes through os.Root, so that a link in a repository cannot lead out of it.
type worktree struct {
	root  *os.Root
	store storage.Storer
	// conv is nil for a folder that is no working tree yet. Such a folder has no settings either.
	conv     *conversion.Converter
	settings settings
}

func openWorktree(dir string, store storage.Storer) (*worktree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &worktree{root: root, store: store}, nil
}

// worktree opens the working tree, with git's settings and conversions for it.
func (r *Repo) worktree(ctx context.Context) (*worktree, error) {
	all, err := r.settings(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.hasFilesHere(all); err != nil {
		return nil, err
	}
	w, err := openWorktree(r.dir, r.git.Storer)
	if err != nil {
		return nil, err
	}
	w.settings = all
	if w.conv, err = r.converter(w.root, all); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// hasFilesHere returns an error if the repository of a folder is bare, or has its working tree elsewhere: git then does not know the files
// in the folder. A linked working tree passes, also in a bare repository.
func (r *Repo) hasFilesHere(all settings) error {
	if r.commonDir() != r.gitDir {
		return nil
	}
	if at := all["core.worktree"]; at != "" {
		if !filepath.IsAbs(at) {
			at = filepath.Join(r.gitDir, at)
		}
		here, err := os.Stat(r.dir)
		if err != nil {
			return err
		}
		if there, err := os.Stat(at); err != nil || !os.SameFile(here, there) {
			return diag.Errorf("run fleetctl there, in a folder whose .git leads to the repository", "%w: %s has its files in %s (core.worktree)",
				ErrNoWorkTree, r.gitDir, at)
		}
		return nil
	}
	if all.on("core.bare") {
		return diag.Errorf("clone it, or add a working tree: git worktree add PATH", "%w: %s is bare", ErrNoWorkTree, r.gitDir)
	}
	return nil
}

func (w *worktree) close() { _ = w.root.Close() } // a handle of a folder, so an error does not matter

// maxOnDisk bounds the bytes of a file on disk, of which a commit may have a smaller form, such as Git LFS's.
const maxOnDisk = 1 << 30

// read returns the content of a file on disk, of no more than maxOnDisk bytes. For a pipe and the like, on which a reader would hang, the
// error matches within.ErrNotRegular.
func (w *worktree) read(name string) ([]byte, error) {
	return within.Read(w.root, filepath.ToSlash(name), maxOnDisk)
}

// conflicts returns the paths whose content on disk is neither the content before the change nor the content after it. A missing file is no
// conflict: nothing would be overwritten.
func (w *worktree) conflicts(ctx context.Context, changes []treeChange) ([]string, error) {
	var dirty []string
	for _, c := range changes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := checkPath(c.path); err != nil {
			return nil, err
		}
		ok, err := w.anyOf(ctx, c.path, c.from, c.to)
		if err != nil {
			return nil, err
		}
		if !ok {
			dirty = append(dirty, c.path)
		}
	}
	return dirty, nil
}

// anyOf tells whether p is missing on disk, or has the content of one of the files.
func (w *worktree) anyOf(ctx context.Context, p string, files ...file) (bool, error) {
	name := filepath.FromSlash(p)
	info, err := w.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	var content []byte
	switch {
	case info.IsDir():
		return w.anyFolder(name, files)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := w.root.Readlink(name)
		if err != nil {
			return false, err
		}
		content = []byte(target)
	case !info.Mode().IsRegular():
		return false, nil
	default:
		if content, err = w.read(name); err != nil {
			return false, err
		}
	}
	hash := plumbing.ComputeHash(plumbing.BlobObject, content)
	for _, f := range files {
		if f.mode != filemode.Empty && f.hash == hash {
			return true, nil
		}
	}
	for _, f := range files {
		if f.mode == filemode.Empty || !info.Mode().IsRegular() {
			continue
		}
		cleaned, err := w.clean(ctx, p, content, f)
		if err != nil {
			return false, err
		}
		if plumbing.ComputeHash(plumbing.BlobObject, cleaned) == f.hash {
			return true, nil
		}
		if w.conv == nil {
			continue
		}
		if same, err := w.checkedOut(ctx, p, content, f); err != nil || same {
			return same, err
		}
	}
	return false, nil
}

// clean converts content from disk to the form of a commit. f is the file in the commit before.
func (w *worktree) clean(ctx context.Context, p string, content []byte, f file) ([]byte, error) {
	if w.conv == nil {
		return bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n")), nil // the file may be from a git that writes CRLF
	}
	was, err := readBlob(w.store, f.blob())
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p, err)
	}
	return w.conv.ToCommit(ctx, p, content, was)
}

// blob returns the hash of a file's content; zero for a submodule, which has none.
func (f file) blob() plumbing.Hash {
	if f.mode == filemode.Submodule {
		return plumbing.ZeroHash
	}
	return f.hash
}

// anyFolder tells whether a folder in the place of a file is no conflict: it is none for a submodule, or if the folder is empty.
func (w *worktree) anyFolder(name string, files []file) (bool, error) {
	for _, f := range files {
		if f.mode == filemode.Submodule {
			return true, nil
		}
	}
	folder, err := w.root.Open(name)
	if err != nil {
		return false, err
	}
	defer func() { _ = folder.Close() }() // it was only read
	_, err = folder.ReadDir(1)
	return errors.Is(err, io.EOF), nil
}

func (w *worktree) remove(p string) error {
	if err := checkPath(p); err != nil {
		return err
	}
	if info, err := w.root.Lstat(filepath.FromSlash(p)); err == nil && info.IsDir() {
		return nil // a folder, and not the file
	}
	err := w.root.Remove(filepath.FromSlash(p))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return err
	}
	// Remove the folders that are empty now. Removing a folder that is not empty fails, which ends the loop.
	dir := path.Dir(p)
	for dir != "." && w.root.Remove(filepath.FromSlash(dir)) == nil {
		dir = path.Dir(dir)
	}
	return nil
}

// sameMode tells whether a file on disk is of the kind that the commit has, as far as this system can tell.
func (w *worktree) sameMode(info fs.FileInfo, mode filemode.FileMode) bool {
	switch mode {
	case filemode.Symlink:
		return info.Mode()&fs.ModeSymlink != 0
	case filemode.Regular, filemode.Deprecated, filemode.Executable:
		return info.Mode().IsRegular() && (!w.knowsModes() || (info.Mode()&0o100 != 0) == (mode == filemode.Executable))
	}
	return true
}

// knowsModes tells whether this file system keeps the executable bit, as git has found out (core.fileMode).
func (w *worktree) knowsModes() bool {
	if runtime.GOOS == "windows" || w.conv == nil {
		return false
	}
	mode, said := w.settings["core.filemode"]
	return !said || mode == "" || w.settings.on("core.filemode")
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
