package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
)

// diskFile is a file to write to disk.
type diskFile struct {
	path    string
	content []byte
	mode    filemode.FileMode
}

// putAtOnce is the number of files that put writes before it renames them into their places. Flushing many files together is faster.
const putAtOnce = 256

// put replaces files atomically: readers, a kill and a power cut find the old or the new content of each file. This matters because the
// files may have edits that exist nowhere else. If a file cannot be written, put still writes the others.
func (w *worktree) put(ctx context.Context, files ...diskFile) error {
	var errs []error
	for batch := range slices.Chunk(files, putAtOnce) {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		errs = append(errs, w.putSome(batch))
	}
	return errors.Join(errs...)
}

func (w *worktree) putSome(files []diskFile) error {
	var errs []error
	var written []*atomicfile.Staged
	places, folders := map[string]func() error{}, map[string]bool{}
	for _, f := range files {
		changed := foldersOfNew(w.root, filepath.FromSlash(f.path))
		staged, place, err := w.stage(f)
		if err != nil {
			errs = append(errs, fmt.Errorf("write %s: %w", f.path, err))
			continue
		}
		if staged != nil {
			written = append(written, staged)
		}
		if place != nil {
			places[f.path] = place
			for _, dir := range changed {
				folders[dir] = true
			}
		}
	}
	if err := atomicfile.Flush(written...); err != nil {
		for _, s := range written {
			err = errors.Join(err, s.Discard())
		}
		return errors.Join(append(errs, err)...)
	}
	for _, p := range slices.Sorted(maps.Keys(places)) {
		if err := places[p](); err != nil {
			errs = append(errs, fmt.Errorf("write %s: %w", p, err))
		}
	}
	errs = append(errs, atomicfile.SyncFolders(w.root, slices.Collect(maps.Keys(folders))...))
	return errors.Join(errs...)
}

// stage writes a file beside its place. It returns the file to flush, if any, and the function that moves the file into its place after
// that. Both are nil if the file already has this content.
func (w *worktree) stage(f diskFile) (staged *atomicfile.Staged, place func() error, err error) {
	if err := checkPath(f.path); err != nil {
		return nil, nil, err
	}
	name := filepath.FromSlash(f.path)
	if f.mode == filemode.Submodule {
		return nil, nil, w.root.MkdirAll(name, 0o777)
	}
	if w.has(name, f.content, f.mode) {
		return nil, nil, nil
	}
	if err := w.root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return nil, nil, err
	}
	if f.mode == filemode.Symlink {
		temp := atomicfile.TempName(name)
		if err := w.root.Symlink(string(f.content), temp); err == nil {
			return nil, func() error {
				w.makeWay(name)
				if err := w.root.Rename(temp, name); err != nil {
					return errors.Join(err, ignoreMissing(w.root.Remove(temp)))
				}
				return nil
			}, nil
		}
		// Without symbolic links (Windows without the privilege), write a file that contains the target, as git does.
	}
	perm, exact := fs.FileMode(0o666), false
	if f.mode == filemode.Executable {
		perm = 0o777
	}
	if info, err := w.root.Lstat(name); err == nil && info.Mode().IsRegular() && f.mode == filemode.Regular && info.Mode()&0o111 == 0 {
		perm, exact = info.Mode().Perm(), true // keep the permissions that the user has set
	}
	staged, err = atomicfile.Stage(w.root, name, f.content, perm, exact)
	if err != nil {
		return nil, nil, err
	}
	return staged, func() error {
		w.makeWay(name)
		return staged.Place()
	}, nil
}

// makeWay removes an empty folder in the place of a file. If the folder is not empty, the later rename fails with the reason.
func (w *worktree) makeWay(name string) {
	if info, err := w.root.Lstat(name); err == nil && info.IsDir() {
		_ = w.root.Remove(name)
	}
}

// has tells whether the file already has this content and mode. It is then not written again, so that its modification time stays.
func (w *worktree) has(name string, content []byte, mode filemode.FileMode) bool {
	info, err := w.root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || mode == filemode.Symlink || info.Size() != int64(len(content)) {
		return false
	}
	if executable := info.Mode()&0o100 != 0; executable != (mode == filemode.Executable) && runtime.GOOS != "windows" {
		return false
	}
	old, err := w.read(name)
	return err == nil && bytes.Equal(old, content)
}

// write makes a file in a temporary folder, where nobody reads it before it is complete.
func (w *worktree) write(name string, content []byte, mode filemode.FileMode) error {
	perm := fs.FileMode(0o666)
	switch mode {
	case filemode.Symlink:
		if err := w.root.Symlink(string(content), name); err == nil {
			return nil
		}
		// Without symbolic links, as in stage.
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
