package gitrepo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
)

// writeWhole makes a repository replace its references and its configuration as a whole. go-git empties such a file and writes it
// then: a kill between the two leaves a branch that is no commit, which is no repository any more for git, nor for Flux. Objects need none of this:
// they are renamed into their places, and not flushed, as git itself leaves it by default.
func writeWhole(r *git.Repository) (*git.Repository, error) {
	store, ok := r.Storer.(*filesystem.Storage)
	if !ok {
		return r, nil // not on a disk
	}
	tree, err := r.Worktree()
	if errors.Is(err, git.ErrIsBareRepository) {
		return git.Open(filesystem.NewStorage(wholeFiles{store.Filesystem()}, cache.NewObjectLRUDefault()), nil)
	}
	if err != nil {
		return nil, err
	}
	return git.Open(filesystem.NewStorage(wholeFiles{store.Filesystem()}, cache.NewObjectLRUDefault()), tree.Filesystem)
}

// asideDir is where a file is written before it takes its place: in the folder of the repository that linked working trees share, as all files that
// this is about are, and where git looks for no references.
const asideDir = "info"

// wholeFiles is a .git folder in which some files are replaced as a whole.
type wholeFiles struct{ billy.Filesystem }

// isWhole tells whether a file is one of those.
func isWhole(name string) bool {
	first, _, _ := strings.Cut(path.Clean(filepath.ToSlash(name)), "/")
	switch first {
	case "refs", "packed-refs", "config", "shallow":
		return true
	}
	return false
}

// Create is that of billy.Filesystem.
func (w wholeFiles) Create(name string) (billy.File, error) {
	return w.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
}

// OpenFile is that of billy.Filesystem.
func (w wholeFiles) OpenFile(name string, flag int, perm os.FileMode) (billy.File, error) {
	if !isWhole(name) || flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return w.Filesystem.OpenFile(name, flag, perm)
	}
	f := &wholeFile{in: w.Filesystem, name: name, perm: perm}
	old, err := w.Open(name)
	switch {
	case err == nil:
		f.content, err = io.ReadAll(old)
		if err = errors.Join(err, old.Close()); err != nil {
			return nil, err
		}
		if info, err := w.Stat(name); err == nil {
			f.perm = info.Mode().Perm()
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case flag&os.O_CREATE == 0:
		return nil, err
	default:
		f.changed = true
	}
	if flag&os.O_TRUNC != 0 {
		f.content, f.changed = nil, true
	}
	return f, nil
}

// wholeFile is one file while it is written: in memory, until Close.
type wholeFile struct {
	in      billy.Filesystem
	name    string
	perm    os.FileMode
	content []byte
	at      int64
	changed bool
}

func (f *wholeFile) Name() string { return f.name }

func (f *wholeFile) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.at)
	f.at += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

func (f *wholeFile) ReadAt(p []byte, at int64) (int, error) {
	return bytes.NewReader(f.content).ReadAt(p, at)
}

func (f *wholeFile) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += int64(len(f.content))
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek in %s: %w", f.name, fs.ErrInvalid)
	}
	f.at = offset
	return offset, nil
}

func (f *wholeFile) Write(p []byte) (int, error) {
	end := f.at + int64(len(p))
	if gap := end - int64(len(f.content)); gap > 0 {
		f.content = append(f.content, make([]byte, gap)...)
	}
	copy(f.content[f.at:end], p)
	f.at = end
	f.changed = true
	return len(p), nil
}

func (f *wholeFile) Truncate(size int64) error {
	if size > int64(len(f.content)) {
		f.content = append(f.content, make([]byte, size-int64(len(f.content)))...)
	}
	f.content, f.changed = f.content[:size], true
	return nil
}

// Lock and Unlock have nothing to do: whoever sets references of ours holds the repository's own lock, and git heeds no lock of this kind.
func (f *wholeFile) Lock() error   { return nil }
func (f *wholeFile) Unlock() error { return nil }

// Close puts the file in its place, if anything was written.
func (f *wholeFile) Close() (err error) {
	if !f.changed {
		return nil
	}
	f.changed = false
	if err := f.in.MkdirAll(asideDir, 0o777); err != nil {
		return err
	}
	aside := atomicfile.TempName(path.Join(asideDir, path.Base(filepath.ToSlash(f.name))))
	temp, err := f.in.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.perm)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.in.Remove(aside) // or it is in its place
		}
	}()
	_, err = temp.Write(f.content)
	if disk, ok := temp.(interface{ Sync() error }); ok && err == nil {
		err = disk.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if err := f.in.MkdirAll(path.Dir(filepath.ToSlash(f.name)), 0o777); err != nil {
		return err
	}
	return f.in.Rename(aside, f.name)
}
