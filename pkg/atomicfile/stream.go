package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// File is one that is written piece by piece, and in its place after Commit only.
type File struct {
	root       *os.Root
	file       *os.File
	temp, name string
}

// New begins a file that will be at path.
func New(path string, perm fs.FileMode) (*File, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	f := &File{root: root, name: filepath.Base(path)}
	f.temp = TempName(f.name)
	if f.file, err = root.OpenFile(f.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm.Perm()); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	if runtime.GOOS != "windows" {
		if err := f.file.Chmod(perm.Perm()); err != nil {
			f.Discard()
			return nil, err
		}
	}
	return f, nil
}

// Write implements io.Writer.
func (f *File) Write(p []byte) (int, error) { return f.file.Write(p) }

// Commit puts the file in its place; it is on the disk then. After an error there is no new file.
func (f *File) Commit() error {
	if err := errors.Join(f.file.Sync(), f.file.Close()); err != nil {
		f.Discard()
		return err
	}
	if err := f.root.Rename(f.temp, f.name); err != nil {
		f.Discard()
		return err
	}
	return errors.Join(SyncFolder(f.root, "."), f.root.Close())
}

// Discard removes what was written. After Commit it does nothing, so it can be deferred.
func (f *File) Discard() {
	_ = f.file.Close()
	_ = f.root.Remove(f.temp) // after Commit the root is closed
	_ = f.root.Close()
}
