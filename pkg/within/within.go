// Package within reads files of a folder that somebody else has filled, such as a fleet repo in a pull request: nothing outside the folder
// is ever opened, whatever symbolic links in it say, and nothing but regular files.
package within

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrNotRegular is the cause where a name is that of a folder, a device, a pipe or a socket.
var ErrNotRegular = errors.New("not a regular file")

// ErrNotFolder is the cause where what is to be listed is no folder.
var ErrNotFolder = errors.New("not a folder")

// ErrTooLarge is the cause where a file is larger than what is read of it.
var ErrTooLarge = errors.New("too large")

// MostNamed bounds what is read of a file that fleet.yaml or a flag names, and of standard input.
const MostNamed = 1 << 20

// Named reads a file that a fleet repo names and that may lie anywhere, such as one with a credential: a regular one, of no more than most
// bytes, since the name may as well be that of a pipe or of a device without an end. errors.Is knows fs.ErrNotExist, ErrNotRegular and
// ErrTooLarge.
func Named(name string, most int64) ([]byte, error) {
	f, err := OpenNamed(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readTo(f, name, most)
}

// OpenNamed opens a regular file that may lie anywhere, for who reads it piece by piece. Of anything else it says ErrNotRegular, and waits
// for nobody.
func OpenNamed(name string) (*os.File, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() { // before it is opened, as in Read
		return nil, &fs.PathError{Op: "read", Path: name, Err: ErrNotRegular}
	}
	f, err := os.OpenFile(name, os.O_RDONLY|dontWait, 0)
	if err != nil {
		return nil, err
	}
	return refuse(f, name, fs.FileMode.IsRegular)
}

// Given reads a file that the user has named, such as one with a token: it may be a pipe, as a shell makes of <(command), so it is read to
// its end, but no further than most bytes. errors.Is knows fs.ErrNotExist and ErrTooLarge.
func Given(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readTo(f, name, most)
}

// readTo reads a file to its end, which is no further than most bytes. It reads nothing of a regular file that is larger.
func readTo(f *os.File, name string, most int64) ([]byte, error) {
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > most {
		return nil, tooLarge(name, most)
	}
	return All(f, name, most) // a pipe has no size, and a file may grow
}

// All reads what is open already, such as standard input, to its end, but no further than most bytes. The error says the name, and matches
// ErrTooLarge.
func All(from io.Reader, name string, most int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(content)) > most {
		return nil, tooLarge(name, most)
	}
	return content, err
}

// tooLarge names the file and the limit.
func tooLarge(name string, most int64) error {
	limit := fmt.Sprintf("%d bytes", most)
	switch {
	case most >= 1<<20 && most%(1<<20) == 0:
		limit = fmt.Sprintf("%d MiB", most>>20)
	case most >= 1<<10 && most%(1<<10) == 0:
		limit = fmt.Sprintf("%d KiB", most>>10)
	}
	return &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w: it has more than %s", ErrTooLarge, limit)}
}

// ReadFile returns the file at a slash-separated path below dir, which has no more than most bytes: nobody takes a part of a file for the
// whole. Symbolic links are followed as far as they stay below dir. Errors say the path, not the folder; errors.Is knows fs.ErrNotExist,
// ErrNotRegular and ErrTooLarge.
func ReadFile(dir, name string, most int64) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return Read(root, name, most)
}

// Read is ReadFile for who reads many files of one folder.
func Read(root *os.Root, name string, most int64) ([]byte, error) {
	f, err := openRegular(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readTo(f, name, most)
}

// Start returns the first most bytes of what ReadFile returns. It is for who refuses a large file in words of its own, and asks for one
// byte more than it takes, and for who needs no whole file.
func Start(dir, name string, most int64) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := openRegular(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// openRegular is Open for who has not looked at the file.
func openRegular(root *os.Root, name string) (*os.File, error) {
	local := filepath.FromSlash(name)
	info, err := root.Stat(local) // before it is opened: to open a device may do something
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: ErrNotRegular}
	}
	return Open(root, name)
}

// Open opens the regular file at a slash-separated path below root. It waits for nobody: a pipe that has taken the place of the file since
// the caller looked at it is refused with ErrNotRegular.
func Open(root *os.Root, name string) (*os.File, error) {
	f, err := openAny(root, name)
	if err != nil {
		return nil, err
	}
	return refuse(f, name, fs.FileMode.IsRegular)
}

// openAny opens whatever has the name, and waits for nobody.
func openAny(root *os.Root, name string) (*os.File, error) {
	return root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|dontWait, 0)
}

// refuse closes an open file that is not what may be read.
func refuse(f *os.File, name string, allowed func(fs.FileMode) bool) (*os.File, error) {
	info, err := f.Stat()
	if err == nil && !allowed(info.Mode()) {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// readable says whether a FS opens what has the mode.
func readable(mode fs.FileMode) bool { return mode.IsRegular() || mode.IsDir() }

// ReadDir lists the folder at a slash-separated path below dir.
func ReadDir(dir, name string) ([]fs.DirEntry, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	local := filepath.Clean(filepath.FromSlash(name))
	info, err := root.Stat(local) // as in Read: to list a pipe is to open it
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "list", Path: name, Err: ErrNotFolder}
	}
	return fs.ReadDir(root.FS(), filepath.ToSlash(local))
}

// Exists says whether there is anything at a slash-separated path below dir.
func Exists(dir, name string) bool {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer root.Close()
	_, err = root.Stat(filepath.FromSlash(name))
	return err == nil
}

// WalkDir is fs.WalkDir of what is below dir, beginning at a slash-separated path. Symbolic links in it are named, not followed, and so are
// folders that are a repository of their own (OtherRepository).
func WalkDir(dir, name string, visit fs.WalkDirFunc) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return visit(name, nil, err)
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), name, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || !OtherRepository(root, name) {
			return visit(name, entry, err)
		}
		if err := visit(name, entry, nil); err != nil {
			return err
		}
		return fs.SkipDir
	})
}
