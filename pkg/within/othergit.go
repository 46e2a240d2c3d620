package within

import (
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// OtherRepository says whether the folder at a slash-separated path below root is a Git repository of its own: a submodule that is checked
// out, or a clone inside the repository. Git keeps no file of such a folder in the outer repository, whatever stands in the folder. An
// empty folder called .git makes none: git passes over it. The root itself, called ".", counts as none.
func OtherRepository(root *os.Root, dir string) bool {
	if dir == "." {
		return false
	}
	git := filepath.Join(filepath.FromSlash(dir), ".git")
	info, err := root.Lstat(git)
	switch {
	case err != nil:
		return false
	case info.IsDir():
		_, err = root.Lstat(filepath.Join(git, "HEAD"))
		return err == nil
	}
	return info.Mode().IsRegular()
}

// Other is OtherRepository of a folder of files, as far as files are an FS.
func Other(files fs.FS, dir string) bool {
	f, ok := files.(*filesOf)
	return ok && OtherRepository(f.root, dir)
}

// openEmpty opens a folder of which nobody gets to see what is in it.
func (f *filesOf) openEmpty(name string) (fs.File, error) {
	info, err := f.root.Lstat(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	return emptyFolder{name: name, info: info}, nil
}

// emptyFolder is an open folder with nothing in it.
type emptyFolder struct {
	name string
	info fs.FileInfo
}

func (e emptyFolder) Stat() (fs.FileInfo, error) { return e.info, nil }
func (emptyFolder) Close() error                 { return nil }

func (e emptyFolder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: path.Clean(e.name), Err: ErrNotRegular}
}

func (emptyFolder) ReadDir(most int) ([]fs.DirEntry, error) {
	if most > 0 {
		return nil, io.EOF
	}
	return nil, nil
}
