package validate

import (
	"bytes"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/render"
)

// treeFS has the files of the fleet repo as they were read, so that rendering neither reads them again nor looks for missing files on the
// disk. A file whose content was not kept comes from the disk.
type treeFS struct {
	tree *tree
	disk fs.FS
}

// disk returns the files on the disk, without those that no commit gets.
func (t *tree) disk() (fs.FS, error) { return render.Dir(t.dir, t.without...) }

// unneeded returns files and folders that Git ignores, without those that fleet.yaml names for their CRDs: a pipeline may fetch these
// before it validates.
func unneeded(ignored, crds []string) []string {
	within := func(a, b string) bool { return a == b || strings.HasPrefix(a, b+"/") }
	return slices.DeleteFunc(slices.Clone(ignored), func(name string) bool {
		return slices.ContainsFunc(crds, func(crd string) bool { return within(name, path.Clean(crd)) || within(path.Clean(crd), name) })
	})
}

// filesOver returns the files from which the fleet is rendered. disk has the same files. If the repo has entries that the tree leaves out,
// such as symbolic links, all files come from disk.
func (t *tree) filesOver(disk fs.FS) fs.FS {
	if t.partial {
		return disk
	}
	return treeFS{t, disk}
}

func (t treeFS) Open(name string) (fs.File, error) {
	info, err := t.stat("open", name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() || info.file.content == nil {
		return t.disk.Open(name)
	}
	return &openFile{info: info, Reader: bytes.NewReader(info.file.content)}, nil
}

// Stat does not look at the disk: the tree knows all files and folders.
func (t treeFS) Stat(name string) (fs.FileInfo, error) {
	info, err := t.stat("stat", name)
	if err != nil {
		return nil, err
	}
	if info.file != nil && info.file.content == nil {
		return fs.Stat(t.disk, name)
	}
	return info, nil
}

func (t treeFS) stat(operation, name string) (treeInfo, error) {
	if f := t.tree.byPath[name]; f != nil {
		return treeInfo{name: path.Base(name), file: f}, nil
	}
	if _, folder := t.tree.folders[name]; folder || name == "." {
		return treeInfo{name: path.Base(name)}, nil
	}
	return treeInfo{}, &fs.PathError{Op: operation, Path: name, Err: fs.ErrNotExist}
}

func (t treeFS) ReadDir(name string) ([]fs.DirEntry, error) {
	info, err := t.stat("open", name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrInvalid}
	}
	names := t.tree.folders[name] // in order: filepath.WalkDir found them
	entries := make([]fs.DirEntry, len(names))
	for i, short := range names {
		entries[i] = fs.FileInfoToDirEntry(treeInfo{name: short, file: t.tree.byPath[path.Join(name, short)]})
	}
	return entries, nil
}

// treeInfo describes a file, or a folder if file is nil.
type treeInfo struct {
	name string
	file *file
}

func (i treeInfo) Name() string { return i.name }
func (i treeInfo) IsDir() bool  { return i.file == nil }
func (i treeInfo) Sys() any     { return nil }

func (i treeInfo) Size() int64 {
	if i.file == nil {
		return 0
	}
	return int64(len(i.file.content))
}

func (i treeInfo) Mode() fs.FileMode {
	if i.file == nil {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// ModTime is not known: nothing of a fleet depends on it.
func (i treeInfo) ModTime() time.Time { return time.Time{} }

// openFile reads a file of the tree.
type openFile struct {
	info treeInfo
	*bytes.Reader
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFile) Close() error               { return nil }
