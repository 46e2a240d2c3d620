package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// asideDir is the folder in which a file is written before it is renamed into its place. It is in the folder that linked working trees
// share, as all these files are, and git looks for no references in it.
const asideDir = "info"

// durable is a .git folder that survives a power cut or a kill. go-git truncates a reference, the configuration or the index of a pack
// before it writes the file, and flushes nothing. A kill in between leaves a branch without a commit, and neither git nor Flux accepts such
// a repository. durable replaces these files atomically, and flushes objects to disk before a reference names them. git itself does so only
// with core.fsync set to "objects,reference,index", which is more than its default.
type durable struct {
	billy.Filesystem
	dir string // of the operating system

	mutex   sync.Mutex
	pending map[string]bool // objects and packs that may not be on the disk yet
	temps   map[string]bool // files that become packs or objects, or are removed
	held    []string        // the files whose git locks lock has taken
}

// TempFile implements billy.Filesystem.
func (w *durable) TempFile(dir, prefix string) (billy.File, error) {
	f, err := w.Filesystem.TempFile(dir, prefix)
	if err == nil && (prefix == "tmp_pack_" || prefix == "tmp_obj_") {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		if w.temps == nil {
			w.temps = map[string]bool{}
		}
		w.temps[f.Name()] = true
	}
	return f, err
}

// dropTemps removes packs and objects that TempFile has begun and that were not renamed. go-git leaves such a file after an error, and a
// pack may have a gigabyte.
func (w *durable) dropTemps() error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var errs []error
	for name := range w.temps {
		errs = append(errs, ignoreMissing(w.Remove(name)))
		delete(w.temps, name)
	}
	return errors.Join(errs...)
}

// isWhole tells whether durable replaces a file atomically.
func isWhole(name string) bool {
	name = path.Clean(filepath.ToSlash(name))
	first, _, _ := strings.Cut(name, "/")
	switch first {
	case "refs", "packed-refs", "config", "shallow":
		return true
	}
	return isObject(name) && path.Ext(name) == ".idx"
}

// isObject tells whether a file is an object, a pack, or something about one.
func isObject(name string) bool { return strings.HasPrefix(filepath.ToSlash(name), "objects/") }

// Rename implements billy.Filesystem. go-git moves objects and packs into their places with it.
func (w *durable) Rename(from, to string) error {
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return err
	}
	made := missingFolders(foldersOfNew(root, filepath.FromSlash(to)))
	if err := errors.Join(root.Close(), w.Filesystem.Rename(from, to)); err != nil {
		return err
	}
	if err := shareFolders(w.dir, made); err != nil {
		return err
	}
	if err := w.share(to); err != nil {
		return err
	}
	w.mutex.Lock()
	delete(w.temps, from)
	w.mutex.Unlock()
	w.owe(to)
	return nil
}

// share lets every user read an object or a pack who may read the folder of the objects, and lets no user write it, as git does. go-git
// gives only the owner access: another user of the repository would find a branch whose commits they cannot read. git has set the mode of
// the folder, by the umask or by core.sharedRepository.
func (w *durable) share(name string) error {
	if !isObject(name) || runtime.GOOS == "windows" { // there the mode gives nobody access
		return nil
	}
	folder, err := os.Stat(filepath.Join(w.dir, "objects"))
	if err != nil {
		return err
	}
	return os.Chmod(filepath.Join(w.dir, filepath.FromSlash(name)), folder.Mode().Perm()&0o444)
}

// owe notes that a file of the repository has to be flushed to disk before a reference is written.
func (w *durable) owe(name string) {
	if name = path.Clean(filepath.ToSlash(name)); isObject(name) {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		w.pending[name] = true
	}
}

// oweObject is owe for an object that git, or a killed fleetctl, may have written. An object in a pack has no file of its own.
func (w *durable) oweObject(hash plumbing.Hash) {
	hex := hash.String()
	w.owe("objects/" + hex[:2] + "/" + hex[2:])
}

// flush flushes all files that owe has noted.
func (w *durable) flush() error {
	if w == nil {
		return nil // the repository is not on a disk
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if len(w.pending) == 0 {
		return nil
	}
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	files, folders := slices.Collect(maps.Keys(w.pending)), map[string]bool{"objects": true}
	for _, name := range files {
		folders[path.Dir(name)] = true
	}
	if err := atomicfile.SyncFiles(root, files...); err != nil {
		return fmt.Errorf("flush the objects of %s: %w", w.dir, err)
	}
	if err := atomicfile.SyncFolders(root, slices.Collect(maps.Keys(folders))...); err != nil {
		return fmt.Errorf("flush the objects of %s: %w", w.dir, err)
	}
	clear(w.pending)
	return nil
}

// Create implements billy.Filesystem.
func (w *durable) Create(name string) (billy.File, error) {
	return w.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
}

// OpenFile implements billy.Filesystem.
func (w *durable) OpenFile(name string, flag int, perm os.FileMode) (billy.File, error) {
	if !isWhole(name) || flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return w.Filesystem.OpenFile(name, flag, perm)
	}
	f := &wholeFile{in: w, name: name, perm: perm, release: func() error { return nil }}
	if err := f.lock(); err != nil {
		return nil, err
	}
	if err := f.read(flag); err != nil {
		return nil, errors.Join(err, f.release())
	}
	return f, nil
}

// lock takes git's lock of the file, unless it is held already.
func (f *wholeFile) lock() error {
	path := f.in.path(f.name)
	f.in.mutex.Lock()
	held := slices.Contains(f.in.held, path)
	f.in.mutex.Unlock()
	if held || isObject(f.name) { // git never changes the index of a pack
		return nil
	}
	var err error
	f.release, err = f.in.lock(context.Background(), path) // the interface has no context; the wait is short
	return err
}

// read reads the present content of the file.
func (f *wholeFile) read(flag int) error {
	old, err := f.in.Open(f.name)
	switch {
	case err == nil:
		f.content, err = within.All(old, f.in.path(f.name), int64(maxRefs)) // as much as a server may have
		if err = errors.Join(err, old.Close()); err != nil {
			return err
		}
		if info, err := f.in.Stat(f.name); err == nil {
			f.perm, f.exact = info.Mode().Perm(), true
		}
	case !errors.Is(err, fs.ErrNotExist), flag&os.O_CREATE == 0:
		return err
	default:
		f.changed = true
	}
	if flag&os.O_TRUNC != 0 {
		f.content, f.changed = nil, true
	}
	return nil
}

// wholeFile is one file while it is written: in memory, until Close.
type wholeFile struct {
	in      *durable
	name    string
	perm    os.FileMode
	exact   bool
	content []byte
	at      int64
	changed bool
	release func() error // of git's lock
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

// Lock and Unlock do nothing, because wholeFile already holds git's lock, which go-git does not know.
func (f *wholeFile) Lock() error   { return nil }
func (f *wholeFile) Unlock() error { return nil }

// Close moves the file into its place, if anything was written. Before that, it flushes the objects that the file may name.
func (f *wholeFile) Close() error {
	var err error
	if f.changed {
		f.changed = false
		err = f.place()
	}
	release := f.release
	f.release = func() error { return nil }
	return errors.Join(err, release())
}

// place writes the file to disk and moves it into its place.
func (f *wholeFile) place() error {
	if err := f.in.flush(); err != nil {
		return err
	}
	root, err := os.OpenRoot(f.in.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	name := filepath.Clean(f.name)
	changed := foldersOfNew(root, name)
	made := slices.Concat(missingFolders(foldersOfNew(root, filepath.Join(asideDir, "any"))), missingFolders(changed))
	for _, dir := range []string{asideDir, filepath.Dir(name)} {
		if err := root.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	if err := shareFolders(f.in.dir, made); err != nil {
		return err
	}
	if !f.exact { // a new file
		if f.perm, err = sharedPerm(f.in.dir, f.perm); err != nil {
			return err
		}
		f.exact = true
	}
	staged, err := atomicfile.Stage(root, filepath.Join(asideDir, filepath.Base(name)), f.content, f.perm, f.exact)
	if err != nil {
		return err
	}
	if err := atomicfile.Flush(staged); err != nil {
		return errors.Join(err, staged.Discard())
	}
	if err := staged.PlaceAs(name); err != nil {
		return err
	}
	return atomicfile.SyncFolders(root, changed...)
}

// foldersOfNew returns the folders below root that get a new entry when a file is put at name: its own folder, and the folders above it up
// to the last one that exists.
func foldersOfNew(root *os.Root, name string) []string {
	var all []string
	for dir := filepath.Dir(name); ; dir = filepath.Dir(dir) {
		all = append(all, dir)
		if dir == "." || dir == filepath.Dir(dir) {
			return all
		}
		if _, err := root.Lstat(dir); err == nil {
			return all
		}
	}
}
