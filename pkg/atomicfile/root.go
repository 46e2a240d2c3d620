package atomicfile

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// tempPrefix and tempSuffix frame the name of every file that is not yet in its place. Fleet repos ignore these names.
const (
	tempPrefix = "."
	tempSuffix = ".fleetctl-tmp"
	randomSize = 10
)

// TempName is a new name beside name for a file that is not yet in its place, as Sweep knows them.
func TempName(name string) string {
	return filepath.Join(filepath.Dir(name), tempPrefix+filepath.Base(name)+"."+rand.Text()[:randomSize]+tempSuffix)
}

// IsTemporary tells whether a file of that name is one that was not yet in its place, and of which file.
func IsTemporary(name string) (of string, ok bool) {
	rest, ok := strings.CutSuffix(name, tempSuffix)
	if !ok {
		return "", false
	}
	if rest, ok = strings.CutPrefix(rest, tempPrefix); !ok {
		return "", false
	}
	dot := strings.LastIndexByte(rest, '.')
	if dot <= 0 || len(rest)-dot-1 != randomSize {
		return "", false
	}
	return rest[:dot], true
}

// Sweep removes the temporary files that killed writers left in a folder. Its caller holds the lock that keeps living ones out. A folder
// that is not there has none.
func Sweep(dir string) error { return sweep(dir, func(string) bool { return true }) }

// SweepFor is Sweep for those of one file alone.
func SweepFor(path string) error {
	return sweep(filepath.Dir(path), func(of string) bool { return of == filepath.Base(path) })
}

func sweep(dir string, wanted func(of string) bool) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if of, ok := IsTemporary(e.Name()); !ok || !wanted(of) || !e.Type().IsRegular() {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Replace is Write for the file name below root. Where exact is false the umask is taken from perm, as for any new file. Other than with
// Write, a symbolic link is replaced.
func Replace(root *os.Root, name string, content []byte, perm fs.FileMode, exact bool) error {
	return writer{flush: flush, exact: exact}.replace(root, name, content, perm)
}

// Stage writes content to a new file beside name, on the disk when it returns, and returns its name. It is for callers who put many
// files into their places together: they rename each, and flush each folder once with SyncFolder.
func Stage(root *os.Root, name string, content []byte, perm fs.FileMode, exact bool) (temp string, err error) {
	return writer{flush: flush, exact: exact}.stage(root, name, content, perm)
}

// writer is a way to write: with exactly the permissions that are asked for or those less the umask, and flush, which nil leaves out.
type writer struct {
	exact bool
	flush func(*os.File) error
}

func (w writer) replace(root *os.Root, name string, content []byte, perm fs.FileMode) error {
	temp, err := w.stage(root, name, content, perm)
	if err != nil {
		return err
	}
	if err := root.Rename(temp, name); err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	if w.flush == nil {
		return nil
	}
	return w.syncFolder(root, filepath.Dir(name))
}

func (w writer) stage(root *os.Root, name string, content []byte, perm fs.FileMode) (temp string, err error) {
	temp = TempName(name)
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm.Perm())
	if err != nil {
		return "", err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			err = errors.Join(err, root.Remove(temp))
		}
	}()
	if _, err := f.Write(content); err != nil {
		return "", err
	}
	if w.exact && runtime.GOOS != "windows" { // Windows has no such permissions
		if err := f.Chmod(perm.Perm()); err != nil {
			return "", err
		}
	}
	if w.flush == nil {
		return temp, nil
	}
	return temp, w.flush(f)
}

// SyncFolder flushes the entries of the folder name below root, so that renames in it survive a power cut.
func SyncFolder(root *os.Root, name string) error { return writer{flush: flush}.syncFolder(root, name) }

func (w writer) syncFolder(root *os.Root, name string) error {
	if runtime.GOOS == "windows" { // a folder cannot be flushed there
		return nil
	}
	dir, err := root.Open(name)
	if err != nil {
		return err
	}
	err = w.flush(dir)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) { // nor on some network file systems
		err = nil
	}
	return errors.Join(err, dir.Close())
}

// SyncTree flushes all files and folders below dir, and dir itself: for a folder that takes its place as a whole. What this user may not read
// is left out: it is of no use to them.
func SyncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = syncEntry(path, d)
		}
		if errors.Is(err, fs.ErrPermission) {
			return nil
		}
		return err
	})
}

func syncEntry(path string, d fs.DirEntry) error {
	switch {
	case d.IsDir():
		return syncFolder(path)
	case !d.Type().IsRegular():
		return nil
	}
	flag := os.O_RDONLY // a program may be nobody's to write
	if runtime.GOOS == "windows" {
		flag = os.O_RDWR // without which nothing is flushed there
	}
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// flush waits until a file or folder is on the disk.
func flush(f *os.File) error { return f.Sync() }
