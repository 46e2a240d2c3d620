package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Sweep removes the temporary files that killed writers left in a folder. It keeps the files of living writers, also of writers in other
// containers, because the kernel knows their locks. A folder that does not exist has none.
func Sweep(dir string) error { return sweep(dir, func(string) bool { return true }) }

// SweepFor is Sweep for the temporary files of one file only.
func SweepFor(path string) error {
	return sweep(filepath.Dir(path), func(of string) bool { return of == filepath.Base(path) })
}

// sweepFor is SweepFor for a file of an open folder.
func sweepFor(root *os.Root, name string) error {
	return sweepIn(root, func(of string) bool { return of == name })
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
	return sweepIn(root, wanted)
}

// sweepIn is sweep for a folder that is open.
func sweepIn(root *os.Root, wanted func(of string) bool) error {
	entries, err := fs.ReadDir(root.FS(), ".")
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

// SweepTree is Sweep for a folder and everything below it. skip names files and folders to leave alone, a folder with its content; names
// are relative to root, with slashes. SweepTree leaves out folders that this user may not read. Nobody can lock a symbolic link. links
// tells that the caller holds the lock of everybody who makes temporary links there, so that SweepTree removes these, too.
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

// removeAbandoned removes a temporary file or folder if nobody holds its lock. In a folder where many users may write, it does not even
// open another user's file: the file may have become a pipe, which blocks whoever opens it.
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
