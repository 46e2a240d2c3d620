package gitrepo

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// MergeBase returns the newest commit that is in the history of both commits. The error says that there is none in this repository, which
// is usual for a shallow clone.
func (r *Repo) MergeBase(a, b string) (string, error) {
	if a == b {
		return a, nil
	}
	first, err := r.git.CommitObject(plumbing.NewHash(a))
	if err != nil {
		return "", fmt.Errorf("read commit %s: %w", a, err)
	}
	second, err := r.git.CommitObject(plumbing.NewHash(b))
	if err != nil {
		return "", fmt.Errorf("read commit %s: %w", b, err)
	}
	bases, err := first.MergeBase(second)
	if err != nil && !errors.Is(err, plumbing.ErrObjectNotFound) {
		return "", fmt.Errorf("look for the common history of %s and %s: %w", a, b, err)
	}
	if len(bases) == 0 {
		return "", diag.Errorf("in a shallow clone: git fetch --unshallow (GitHub Actions: fetch-depth: 0)",
			"commits %s and %s have no common history in this repository", a, b)
	}
	return bases[0].Hash.String(), nil
}

// Files returns the files of a commit without touching the working tree. Several goroutines may use the file system at once.
func (r *Repo) Files(commit string) (fs.FS, error) {
	tree, err := treeOf(r.git.Storer, plumbing.NewHash(commit))
	if err != nil {
		return nil, err
	}
	return &treeFS{store: r.git.Storer, root: tree, trees: map[plumbing.Hash]map[string]object.TreeEntry{}}, nil
}

// treeFS reads a tree of the object store.
type treeFS struct {
	root plumbing.Hash

	mu    sync.Mutex // go-git's store is for one reader at a time
	store storage.Storer
	trees map[plumbing.Hash]map[string]object.TreeEntry
}

// tree returns the entries of a tree, each read once.
func (t *treeFS) tree(hash plumbing.Hash) (map[string]object.TreeEntry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if entries, ok := t.trees[hash]; ok {
		return entries, nil
	}
	entries, err := readTree(t.store, hash)
	if err == nil {
		t.trees[hash] = entries
	}
	return entries, err
}

func (t *treeFS) blob(hash plumbing.Hash) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return readBlob(t.store, hash)
}

func (t *treeFS) find(op, name string) (object.TreeEntry, error) {
	none := object.TreeEntry{}
	fail := func(err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }
	if !fs.ValidPath(strings.ToValidUTF8(name, "_")) { // git, unlike io/fs, allows names that are no UTF-8
		return none, fail(fs.ErrInvalid)
	}
	at := object.TreeEntry{Name: ".", Mode: filemode.Dir, Hash: t.root}
	if name == "." {
		return at, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if at.Mode != filemode.Dir {
			return none, fail(fs.ErrNotExist)
		}
		entries, err := t.tree(at.Hash)
		if err != nil {
			return none, fail(err)
		}
		next, ok := entries[part]
		if !ok {
			return none, fail(fs.ErrNotExist)
		}
		at = next
	}
	return at, nil
}

// Open implements fs.FS.
func (t *treeFS) Open(name string) (fs.File, error) {
	e, err := t.find("open", name)
	if err != nil {
		return nil, err
	}
	f := &treeFile{fs: t, entry: e, path: name}
	if e.Mode.IsFile() {
		if f.content, err = t.blob(e.Hash); err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		f.reader = bytes.NewReader(f.content)
	}
	return f, nil
}

// Stat implements fs.StatFS. It does not read the file.
func (t *treeFS) Stat(name string) (fs.FileInfo, error) {
	e, err := t.find("stat", name)
	if err != nil {
		return nil, err
	}
	return treeDirEntry{fs: t, info: treeInfo{entry: e, name: path.Base(name)}}.Info()
}

// treeDirEntry is an entry whose size is read only by Info.
type treeDirEntry struct {
	fs   *treeFS
	info treeInfo
}

func (d treeDirEntry) Name() string      { return d.info.name }
func (d treeDirEntry) IsDir() bool       { return d.info.IsDir() }
func (d treeDirEntry) Type() fs.FileMode { return d.info.Mode().Type() }
func (d treeDirEntry) String() string    { return fs.FormatDirEntry(d) }

func (d treeDirEntry) Info() (fs.FileInfo, error) {
	var err error
	if d.info.entry.Mode.IsFile() {
		d.info.size, err = d.fs.size(d.info.entry.Hash)
	}
	return d.info, err
}

func (t *treeFS) size(hash plumbing.Hash) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	size, err := t.store.EncodedObjectSize(hash)
	return size, here(err)
}

// ReadDir implements fs.ReadDirFS.
func (t *treeFS) ReadDir(name string) ([]fs.DirEntry, error) {
	e, err := t.find("readdir", name)
	if err != nil {
		return nil, err
	}
	if e.Mode == filemode.Submodule {
		return nil, nil // the files of a submodule are in another repository, and Flux gets an empty folder
	}
	if e.Mode != filemode.Dir {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("not a folder")}
	}
	entries, err := t.tree(e.Hash)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	all := make([]fs.DirEntry, 0, len(entries))
	for name, inner := range entries {
		all = append(all, treeDirEntry{fs: t, info: treeInfo{entry: inner, name: name}})
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return all, nil
}

// treeFile is an open file or folder.
type treeFile struct {
	fs      *treeFS
	entry   object.TreeEntry
	path    string
	content []byte
	reader  *bytes.Reader
	entries []fs.DirEntry // of a folder, once it was listed
	listed  int
}

// Stat implements fs.File.
func (f *treeFile) Stat() (fs.FileInfo, error) {
	return treeInfo{entry: f.entry, name: path.Base(f.path), size: int64(len(f.content))}, nil
}

// Read implements fs.File.
func (f *treeFile) Read(p []byte) (int, error) {
	if f.reader == nil {
		return 0, &fs.PathError{Op: "read", Path: f.path, Err: errors.New("not a regular file")}
	}
	return f.reader.Read(p)
}

// ReadDir implements fs.ReadDirFile.
func (f *treeFile) ReadDir(n int) ([]fs.DirEntry, error) {
	if f.entries == nil {
		all, err := f.fs.ReadDir(f.path)
		if err != nil {
			return nil, err
		}
		f.entries = all
	}
	rest := f.entries[f.listed:]
	if n > 0 {
		if len(rest) == 0 {
			return nil, io.EOF
		}
		rest = rest[:min(n, len(rest))]
	}
	f.listed += len(rest)
	return slices.Clone(rest), nil
}

// Close implements fs.File.
func (*treeFile) Close() error { return nil }

// treeInfo describes an entry of a tree.
type treeInfo struct {
	entry object.TreeEntry
	name  string
	size  int64
}

func (i treeInfo) Name() string       { return i.name }
func (i treeInfo) Size() int64        { return i.size }
func (i treeInfo) ModTime() time.Time { return time.Time{} }
func (i treeInfo) IsDir() bool        { return i.Mode().IsDir() }
func (i treeInfo) Sys() any           { return nil }

func (i treeInfo) Mode() fs.FileMode {
	switch i.entry.Mode {
	case filemode.Dir, filemode.Submodule:
		return fs.ModeDir | 0o755
	case filemode.Executable:
		return 0o755
	case filemode.Symlink:
		return fs.ModeSymlink | 0o777
	}
	return 0o644
}
