package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Sweep removes the temporary files that killed writers left in a folder. Those of living ones stay, wherever in the world they are: the
// kernel tells. A folder that is not there has none.
func Sweep(dir string) error { return sweep(dir, func(string) bool { return true }) }

// SweepFor is Sweep for those of one file alone.
func SweepFor(path string) error {
	return sweep(filepath.Dir(path), func(of string) bool { return of == filepath.Base(path) })
}

func sweep(dir string, wanted func(of string) bool) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if of, ok := IsTemporary(e.Name()); ok && wanted(of) && (e.Type().IsRegular() || e.IsDir() && holdsOpen) {
			if err := removeAbandoned(root, e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// SweepTree is Sweep for a folder and all below it. Of what has its name, skip says what is to be left alone, a folder with all that is in
// it; names are relative to root, with slashes. A folder that this user may not read is left out. Nobody can hold a symbolic link: links
// says that the caller has the lock of all who make temporary ones there, and that they go, too.
func SweepTree(root *os.Root, links bool, skip func(name string, isDir bool) bool) error {
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist): // or somebody else has removed it
			return nil
		case err != nil:
			return err
		}
		_, temporary := IsTemporary(d.Name())
		switch {
		case d.IsDir() && skip(name, true):
			return fs.SkipDir
		case !temporary || skip(name, false):
			return nil
		case links && d.Type() == fs.ModeSymlink:
			return root.Remove(filepath.FromSlash(name))
		case !d.Type().IsRegular():
			return nil
		}
		return removeAbandoned(root, filepath.FromSlash(name))
	})
}

// removeAbandoned removes a temporary file or folder, if nobody holds it. Where many may write, what is somebody else's is not even opened:
// it may have become a pipe, which has who opens it wait.
func removeAbandoned(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (!mine(info) || !info.Mode().IsRegular() && !info.IsDir()) {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil // in its place by now, or none of ours
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if !abandoned(f) || !stillThere(root, name, f) {
		return nil
	}
	if !holdsOpen { // what is open cannot be removed there
		_ = f.Close()
	}
	err = root.RemoveAll(name)
	if errors.Is(err, fs.ErrNotExist) || !holdsOpen && err != nil { // it is open elsewhere
		return nil
	}
	return err
}
