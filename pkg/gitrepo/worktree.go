package gitrepo

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage"
)

// tree is a working tree on disk. All access goes through os.Root: a link in a repository cannot lead out of it.
type worktree struct {
	root  *os.Root
	store storage.Storer
	// crlf: the user's git turns line ends into CRLF on checkout, so such a file is not changed.
	crlf bool
}

func openWorktree(dir string, store storage.Storer, cfg *config.Config) (*worktree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &worktree{root: root, store: store, crlf: cfg.Raw.Section("core").Option("autocrlf") == "true"}, nil
}

func (w *worktree) close() { _ = w.root.Close() } // a folder handle: nothing is lost

// conflicts returns the paths whose content on disk is neither what the change starts from nor what it leads to. A file that
// is missing is no conflict: nothing would be overwritten.
func (w *worktree) conflicts(ctx context.Context, changes []treeChange) ([]string, error) {
	var dirty []string
	for _, c := range changes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := checkPath(c.path); err != nil {
			return nil, err
		}
		ok, err := w.anyOf(c.path, c.from, c.to)
		if err != nil {
			return nil, err
		}
		if !ok {
			dirty = append(dirty, c.path)
		}
	}
	return dirty, nil
}

// anyOf says whether p is missing on disk or has the content of one of the files.
func (w *worktree) anyOf(p string, files ...file) (bool, error) {
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
	default:
		if content, err = w.root.ReadFile(name); err != nil {
			return false, err
		}
	}
	hash := plumbing.ComputeHash(plumbing.BlobObject, content)
	var lf plumbing.Hash
	if w.crlf {
		lf = plumbing.ComputeHash(plumbing.BlobObject, bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n")))
	}
	for _, f := range files {
		if f.mode != filemode.Empty && (f.hash == hash || f.hash == lf) {
			return true, nil
		}
	}
	return false, nil
}

// anyFolder: a folder stands where a file goes. It is right for a submodule, or if there is nothing in it.
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

// apply writes the changes to disk and into the index. Deletions come first, so that a file can become a folder.
func (w *worktree) apply(ctx context.Context, l *lock, changes []treeChange) error {
	for _, c := range changes {
		if c.to.mode != filemode.Empty {
			continue
		}
		if err := errors.Join(ctx.Err(), w.remove(c.path)); err != nil {
			return fmt.Errorf("remove %s: %w", c.path, err)
		}
		if l.entries[c.path] != nil {
			delete(l.entries, c.path)
			l.changed = true
		}
	}
	for _, c := range changes {
		if c.to.mode == filemode.Empty {
			continue
		}
		if err := errors.Join(ctx.Err(), w.put(c.path, c.to)); err != nil {
			return fmt.Errorf("write %s: %w", c.path, err)
		}
		if e := l.entries[c.path]; e == nil || e.Hash != c.to.hash || e.Mode != c.to.mode || e.IntentToAdd {
			l.entries[c.path] = w.entry(c)
			l.changed = true
		}
	}
	return nil
}

// entry is what the index says of a file that was just written.
func (w *worktree) entry(c treeChange) *index.Entry {
	e := &index.Entry{Name: c.path, Hash: c.to.hash, Mode: c.to.mode}
	if info, err := w.root.Lstat(filepath.FromSlash(c.path)); err == nil && c.to.mode != filemode.Submodule {
		e.ModifiedAt, e.Size = info.ModTime(), uint32(info.Size()) //nolint:gosec // git keeps the lower 32 bits too
	}
	return e
}

func (w *worktree) remove(p string) error {
	if err := checkPath(p); err != nil {
		return err
	}
	if info, err := w.root.Lstat(filepath.FromSlash(p)); err == nil && info.IsDir() {
		return nil // not the file that is meant
	}
	err := w.root.Remove(filepath.FromSlash(p))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return err
	}
	// Folders go with their last file; one that is not empty cannot be removed, which ends this.
	dir := path.Dir(p)
	for dir != "." && w.root.Remove(filepath.FromSlash(dir)) == nil {
		dir = path.Dir(dir)
	}
	return nil
}

// put writes one file so that a reader, or a kill, sees the old or the new one.
func (w *worktree) put(p string, f file) error {
	if err := checkPath(p); err != nil {
		return err
	}
	name := filepath.FromSlash(p)
	if f.mode == filemode.Submodule {
		return w.root.MkdirAll(name, 0o777)
	}
	blob, err := object.GetBlob(w.store, f.hash)
	if err != nil {
		return err
	}
	reader, err := blob.Reader()
	if err != nil {
		return err
	}
	content, err := io.ReadAll(reader)
	if err := errors.Join(err, reader.Close()); err != nil {
		return err
	}
	if w.has(name, content, f.mode) {
		return nil
	}
	if err := w.root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(name), ".fleetctl-"+rand.Text())
	if err := w.write(temporary, content, f.mode); err != nil {
		return errors.Join(err, ignoreMissing(w.root.Remove(temporary)))
	}
	if info, err := w.root.Lstat(name); err == nil && info.IsDir() {
		_ = w.root.Remove(name) // an empty folder makes way; for any other the rename says why not
	}
	if err := w.root.Rename(temporary, name); err != nil {
		return errors.Join(err, ignoreMissing(w.root.Remove(temporary)))
	}
	return nil
}

// has says whether name is that very file already, so that its time stays.
func (w *worktree) has(name string, content []byte, mode filemode.FileMode) bool {
	info, err := w.root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || mode == filemode.Symlink || info.Size() != int64(len(content)) {
		return false
	}
	if executable := info.Mode()&0o100 != 0; executable != (mode == filemode.Executable) && runtime.GOOS != "windows" {
		return false
	}
	old, err := w.root.ReadFile(name)
	return err == nil && bytes.Equal(old, content)
}

func (w *worktree) write(name string, content []byte, mode filemode.FileMode) error {
	perm := fs.FileMode(0o666)
	switch mode {
	case filemode.Symlink:
		if err := w.root.Symlink(string(content), name); err == nil {
			return nil
		}
		// No links here (Windows without the privilege): a file with the target in it, as git does it.
	case filemode.Executable:
		perm = 0o777
	}
	f, err := w.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
