package atomicfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

// tempPrefix and tempSuffix frame the name of every file that is not yet in its place. Fleet repos ignore these names.
const (
	tempPrefix = "."
	tempSuffix = ".fleetctl-tmp"
	randomSize = 10
)

// randomDigits are those of rand.Text.
const randomDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

// TempName is a new name beside name for a file that is not yet in its place, as Sweep knows them.
func TempName(name string) string {
	return filepath.Join(filepath.Dir(name), tempPrefix+filepath.Base(name)+"."+rand.Text()[:randomSize]+tempSuffix)
}

// IsTemporary tells whether a name is the name of a temporary file, and of which file.
func IsTemporary(name string) (of string, ok bool) {
	rest, ok := strings.CutSuffix(name, tempSuffix)
	if !ok {
		return "", false
	}
	if rest, ok = strings.CutPrefix(rest, tempPrefix); !ok {
		return "", false
	}
	dot := strings.LastIndexByte(rest, '.')
	if dot <= 0 || len(rest)-dot-1 != randomSize || strings.Trim(rest[dot+1:], randomDigits) != "" {
		return "", false
	}
	return rest[:dot], true
}

// Replace is Write for the file name below root. Where exact is false the umask is taken from perm, as for any new file. Other than with
// Write, a symbolic link is replaced.
func Replace(root *os.Root, name string, content []byte, perm fs.FileMode, exact bool) error {
	return writer{flush: flush, exact: exact}.replace(root, name, content, perm)
}

// Staged is a file that is written and not in its place yet. It is for callers who put many files into their places together: they stage
// all, Flush them, Place each, and flush each folder once with SyncFolder. Until then nobody sweeps it away.
type Staged struct {
	root       *os.Root
	temp, name string
	held       *os.File // nil where what is open cannot be renamed
}

// Stage writes content to a new file beside the file name below root.
func Stage(root *os.Root, name string, content []byte, perm fs.FileMode, exact bool) (*Staged, error) {
	return writer{exact: exact}.stage(root, name, content, perm)
}

// Flush waits until staged files are on the disk: many at a time, for then the disk takes them together.
func Flush(staged ...*Staged) error {
	return each(staged, func(s *Staged) error {
		if s.held != nil {
			return s.held.Sync()
		}
		f, err := s.root.OpenFile(s.temp, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// Place puts the file in its place.
func (s *Staged) Place() error { return s.PlaceAs(s.name) }

// PlaceAs puts the file in the place of another file than the file that it was staged beside.
func (s *Staged) PlaceAs(name string) error {
	if err := s.root.Rename(s.temp, name); err != nil {
		return errors.Join(err, s.Discard())
	}
	return s.release()
}

// Discard removes the file. After Place it does nothing but fail.
func (s *Staged) Discard() error { return errors.Join(s.root.Remove(s.temp), s.release()) }

func (s *Staged) release() error {
	if s.held == nil {
		return nil
	}
	held := s.held
	s.held = nil
	return held.Close()
}

// writer is a way to write files: with exactly the requested permissions, or with these less the umask. A nil flush means that nothing is
// flushed.
type writer struct {
	exact bool
	flush func(*os.File) error
}

func (w writer) replace(root *os.Root, name string, content []byte, perm fs.FileMode) error {
	staged, err := w.stage(root, name, content, perm)
	if err != nil {
		return err
	}
	if err := staged.Place(); err != nil || w.flush == nil {
		return err
	}
	return w.syncFolder(root, filepath.Dir(name))
}

func (w writer) stage(root *os.Root, name string, content []byte, perm fs.FileMode) (_ *Staged, err error) {
	f, temp, err := create(root, name, perm)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), root.Remove(temp))
		}
	}()
	if _, err := f.Write(content); err != nil {
		return nil, err
	}
	if w.exact && runtime.GOOS != "windows" { // Windows has no such permissions
		if err := f.Chmod(perm.Perm()); err != nil {
			return nil, err
		}
	}
	if w.flush != nil {
		if err := w.flush(f); err != nil {
			return nil, err
		}
	}
	held, err := holdOn(root, temp, f)
	return &Staged{root: root, temp: temp, name: name, held: held}, err
}

// create makes the temporary file for another file. It locks the temporary file before anybody could take it for abandoned.
func create(root *os.Root, name string, perm fs.FileMode) (f *os.File, temp string, err error) {
	const attempts = 100 // each lost to somebody who swept just then
	for range attempts {
		temp = TempName(name)
		if f, err = root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm.Perm()); err != nil {
			return nil, "", err
		}
		if hold(f) && stillThere(root, temp, f) {
			return f, temp, nil
		}
		if err := f.Close(); err != nil {
			return nil, "", err
		}
	}
	return nil, "", fmt.Errorf("%s was swept away %d times", temp, attempts)
}

// stillThere tells whether an open file is what stands under a name.
func stillThere(root *os.Root, name string, f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := root.Lstat(name)
	return err == nil && os.SameFile(info, there)
}

// holdOn closes a written file, and keeps its lock through a new descriptor that is not open for writing. A program that is open for
// writing could not be run right after it is in its place.
func holdOn(root *os.Root, temp string, f *os.File) (*os.File, error) {
	if !holdsOpen {
		return nil, f.Close()
	}
	held, err := root.Open(temp)
	if errors.Is(err, fs.ErrPermission) { // not even its maker may read it
		return nil, f.Close()
	}
	if err != nil {
		return nil, err
	}
	hold(held)
	return held, f.Close()
}

// SyncFolder flushes the entries of the folder name below root, so that renames in it survive a power cut.
func SyncFolder(root *os.Root, name string) error { return writer{flush: flush}.syncFolder(root, name) }

// SyncFolders is SyncFolder for many folders. A folder that no longer exists has nothing to flush.
func SyncFolders(root *os.Root, names ...string) error {
	return each(names, func(name string) error {
		if err := SyncFolder(root, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("flush folder %s: %w", name, err)
		}
		return nil
	})
}

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

// SyncFiles flushes files below root that others have written. A file that no longer exists has nothing to flush.
func SyncFiles(root *os.Root, names ...string) error {
	flag := os.O_RDONLY // it may be nobody's to write
	if runtime.GOOS == "windows" {
		flag = os.O_RDWR // without which nothing is flushed there
	}
	return each(names, func(name string) error {
		f, err := root.OpenFile(name, flag, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// SyncTree flushes all files and folders below dir, and dir itself. It is for a folder that is put into its place as a whole. It leaves out
// files that this user may not read.
func SyncTree(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var files, folders []string
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrPermission):
			return nil
		case err != nil:
			return err
		case d.IsDir():
			folders = append(folders, filepath.FromSlash(path))
		case d.Type().IsRegular():
			files = append(files, filepath.FromSlash(path))
		}
		return nil
	})
	if err != nil {
		return err
	}
	readable := func(sync func(*os.Root, ...string) error) func(string) error {
		return func(name string) error {
			if err := sync(root, name); err != nil && !errors.Is(err, fs.ErrPermission) {
				return err
			}
			return nil
		}
	}
	return errors.Join(each(files, readable(SyncFiles)), each(folders, readable(SyncFolders)))
}

// each does something with each of many, some at a time.
func each[T any](of []T, do func(T) error) error {
	const most = 32
	var group sync.WaitGroup
	errs := make([]error, len(of))
	slots := make(chan struct{}, most)
	for i, one := range of {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(one)
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// flush waits until a file or folder is on the disk.
func flush(f *os.File) error { return f.Sync() }
