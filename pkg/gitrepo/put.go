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

// diskFile is a file as it is to stand on disk.
type diskFile struct {
	path    string
	content []byte
	mode    filemode.FileMode
}

// putAtOnce is how many files are open before they take their places: the disk takes many together in the time of a few.
const putAtOnce = 256

// put writes files so that a reader, or a kill, sees of each the old or the new one, and a power cut too: they may take the place of edits
// that are nowhere else. What cannot be written does not keep the others from it.
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

// stage writes a file beside its place. It returns the file to flush, if any, and the function that then moves it into its place. Both are
// nil for a file that is there already.
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
		// No links here (Windows without the privilege): a file with the target in it, as git does it.
	}
	perm, exact := fs.FileMode(0o666), false
	if f.mode == filemode.Executable {
		perm = 0o777
	}
	if info, err := w.root.Lstat(name); err == nil && info.Mode().IsRegular() && f.mode == filemode.Regular && info.Mode()&0o111 == 0 {
		perm, exact = info.Mode().Perm(), true // who may read it is for the user to say
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

// makeWay removes an empty folder where a file goes; for any other the rename says why not.
func (w *worktree) makeWay(name string) {
	if info, err := w.root.Lstat(name); err == nil && info.IsDir() {
		_ = w.root.Remove(name)
	}
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
	old, err := w.read(name)
	return err == nil && bytes.Equal(old, content)
}

// write makes a file in a folder of our own: nobody looks there before it is whole.
func (w *worktree) write(name string, content []byte, mode filemode.FileMode) error {
	perm := fs.FileMode(0o666)
	switch mode {
	case filemode.Symlink:
		if err := w.root.Symlink(string(content), name); err == nil {
			return nil
		}
		// No links here, as in stage.
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
