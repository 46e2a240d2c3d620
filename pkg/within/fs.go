package within

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
)

// FS are the files of a folder as they lie there: its regular files and folders. A symbolic link is one, and leads nowhere, as in a commit
// and in what Flux makes of it. Nothing but a regular file or a folder is ever opened: a pipe would have who opens it wait.
//
// A folder that is a Git repository of its own, such as a submodule, is empty (OtherRepository): no commit of the outer repository has its
// files. The top folder may be a repository.
//
// The files and folders in without, which are paths with slashes, are not there.
//
// What a folder holds is looked up once, so an FS is for who reads files that nobody changes meanwhile. It may be used by several
// goroutines.
func FS(dir string, without ...string) (fs.FS, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f := &filesOf{root: root, open: opener(root), listings: map[string]*listing{}, without: map[string]bool{}}
	for _, name := range without {
		f.without[path.Clean(name)] = true
	}
	return f, nil
}

type filesOf struct {
	root *os.Root
	// open, where the system has it, opens in one step what root opens folder by folder; what it refuses is for root to tell.
	open     func(name string) (*os.File, error)
	mu       sync.Mutex
	listings map[string]*listing
	without  map[string]bool
}

// listing is what is in a folder.
type listing struct {
	once    sync.Once
	entries []fs.DirEntry
	types   map[string]fs.FileMode
	err     error
}

// list lists a folder. It is asked only for what is one.
func (f *filesOf) list(dir string) *listing {
	f.mu.Lock()
	l := f.listings[dir]
	if l == nil {
		l = &listing{}
		f.listings[dir] = l
	}
	f.mu.Unlock()
	l.once.Do(func() {
		l.entries, l.err = f.entries(dir)
		if len(f.without) > 0 {
			l.entries = slices.DeleteFunc(l.entries, func(e fs.DirEntry) bool { return f.without[path.Join(dir, e.Name())] })
		}
		l.types = make(map[string]fs.FileMode, len(l.entries))
		for _, e := range l.entries {
			l.types[e.Name()] = e.Type()
		}
	})
	return l
}

// kind is the type of what has a name.
func (f *filesOf) kind(name string) (fs.FileMode, error) {
	if name == "." {
		return fs.ModeDir, nil
	}
	dir := path.Dir(name)
	f.mu.Lock()
	_, listed := f.listings[dir] // which is a folder, then
	f.mu.Unlock()
	if !listed {
		switch kind, err := f.kind(dir); {
		case err != nil:
			return 0, err
		case !kind.IsDir():
			return 0, fs.ErrNotExist
		}
	}
	in := f.list(dir)
	if in.err != nil {
		return 0, in.err
	}
	kind, ok := in.types[path.Base(name)]
	if !ok {
		return 0, fs.ErrNotExist
	}
	return kind, nil
}

// find is kind for who was asked for a name.
func (f *filesOf) find(op, name string) (fs.FileMode, error) {
	if !fs.ValidPath(name) {
		return 0, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	kind, err := f.kind(name)
	if err != nil {
		return 0, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return kind, nil
}

// Kind is the type of what has a name in files, as an FS knows it without another look at the disk.
func Kind(files fs.FS, name string) (fs.FileMode, error) {
	if f, ok := files.(*filesOf); ok {
		return f.find("stat", name)
	}
	info, err := fs.Stat(files, name)
	if err != nil {
		return 0, err
	}
	return info.Mode().Type(), nil
}

// Open implements fs.FS. The error of what is neither a regular file nor a folder matches ErrNotRegular.
func (f *filesOf) Open(name string) (fs.File, error) {
	kind, err := f.find("open", name)
	if err != nil {
		return nil, err
	}
	if !readable(kind) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	if kind.IsDir() && OtherRepository(f.root, name) {
		return f.openEmpty(name)
	}
	opened := f.openAtOnce(name)
	if opened == nil {
		if opened, err = openAny(f.root, name); err != nil {
			return nil, err
		}
	}
	return refuse(opened, name, readable) // it may have been another thing when its folder was listed
}

// openAtOnce is nil where it takes another way.
func (f *filesOf) openAtOnce(name string) *os.File {
	if f.open == nil {
		return nil
	}
	opened, err := f.open(name)
	if err != nil {
		return nil
	}
	return opened
}

// entries are what is in a folder, by name.
func (f *filesOf) entries(dir string) ([]fs.DirEntry, error) {
	if OtherRepository(f.root, dir) {
		return nil, nil
	}
	folder := f.openAtOnce(dir)
	if folder == nil {
		return fs.ReadDir(f.root.FS(), dir)
	}
	defer folder.Close()
	entries, err := folder.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, err
}

// Stat implements fs.StatFS. Of a symbolic link it says that it is one.
func (f *filesOf) Stat(name string) (fs.FileInfo, error) {
	if _, err := f.find("stat", name); err != nil {
		return nil, err
	}
	return fs.Lstat(f.root.FS(), name)
}

// ReadDir implements fs.ReadDirFS.
func (f *filesOf) ReadDir(name string) ([]fs.DirEntry, error) {
	kind, err := f.find("list", name)
	if err != nil {
		return nil, err
	}
	if !kind.IsDir() {
		return nil, &fs.PathError{Op: "list", Path: name, Err: ErrNotFolder}
	}
	l := f.list(name)
	return slices.Clone(l.entries), l.err
}
