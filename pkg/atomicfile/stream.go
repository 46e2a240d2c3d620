package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// File is a file that is written piece by piece, and that is in its place only after Commit.
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
	_ = sweepFor(root, f.name)
	if f.file, f.temp, err = create(root, f.name, perm); err != nil {
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
	err := f.file.Sync()
	var held *os.File
	if err == nil {
		held, err = holdOn(f.root, f.temp, f.file)
	}
	if err != nil {
		f.Discard()
		return err
	}
	staged := &Staged{root: f.root, temp: f.temp, name: f.name, held: held}
	if err := staged.Place(); err != nil {
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

// Folder is a folder that is made beside its place, and that is in its place, as a whole, only after Commit.
type Folder struct {
	// Path is the folder to put the content into.
	Path string

	root *os.Root
	held *os.File
	name string
}

// NewFolder begins a folder that will be at path, where nothing but an empty folder is.
func NewFolder(path string, perm fs.FileMode) (*Folder, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	f := &Folder{root: root, name: filepath.Base(path)}
	const attempts = 100 // each lost to somebody who swept just then
	for range attempts {
		temp := TempName(f.name)
		if err = root.Mkdir(temp, perm); err != nil {
			break
		}
		if f.held, err = root.Open(temp); err == nil && hold(f.held) && stillThere(root, temp, f.held) {
			f.Path = filepath.Join(filepath.Dir(path), temp)
			return f, nil
		}
		if f.held != nil {
			_ = f.held.Close()
		}
	}
	return nil, errors.Join(err, root.Close())
}

// Commit puts the folder in its place; it, and all in it, is on the disk then.
func (f *Folder) Commit() error {
	if err := SyncTree(f.Path); err != nil {
		return err
	}
	if err := f.root.Remove(f.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !holdsOpen {
		_ = f.held.Close()
	}
	if err := f.root.Rename(filepath.Base(f.Path), f.name); err != nil {
		return err
	}
	_ = f.held.Close() // it was only held
	return errors.Join(SyncFolder(f.root, "."), f.root.Close())
}

// Discard removes what was made. After Commit it does nothing, so it can be deferred.
func (f *Folder) Discard() {
	_ = f.held.Close()
	_ = f.root.RemoveAll(filepath.Base(f.Path)) // after Commit the root is closed
	_ = f.root.Close()
}
