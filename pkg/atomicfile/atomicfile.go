// Package atomicfile is the one place where files are replaced. A reader sees the old file or the new one, never a part, also after kill
// -9. Before a writer returns, the file and its entry in the folder are on the disk, so that a power cut leaves neither an empty key nor a
// truncated record. The well-kept libraries for this rename without flushing the folder, and none works below an os.Root.
//
// A process that is killed while it writes may leave a temporary file. Whoever writes the same file next removes it, and Sweep removes
// those of a whole folder; neither touches one of a process that lives. That one cannot be removed keeps nobody from writing.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the file at path by content, or makes it, with exactly the permissions perm. A symbolic link at path stays, and what it
// points to is replaced. The folder must exist: see MkdirAll.
func Write(path string, content []byte, perm fs.FileMode) error {
	return writer{exact: true, flush: flush}.write(path, content, perm)
}

// WriteVolatile is Write that does not wait for the disk: every reader sees a whole file, a power cut may leave an empty one. It is for
// what a reboot makes void or what is made anew at every start, and is written so often that waiting would be felt.
func WriteVolatile(path string, content []byte, perm fs.FileMode) error {
	return writer{exact: true}.write(path, content, perm)
}

func (w writer) write(path string, content []byte, perm fs.FileMode) error {
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		target, err = path, nil
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	root, err := os.OpenRoot(filepath.Dir(target))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer root.Close()
	_ = sweepFor(root, filepath.Base(target))
	if err := w.replace(root, filepath.Base(target), content, perm); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Create makes the file at path with content, and fails with fs.ErrExist where there is one already. It appears with its content:
// nobody ever finds it empty.
func Create(path string, content []byte, perm fs.FileMode) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	defer root.Close()
	name := filepath.Base(path)
	_ = sweepFor(root, name)
	staged, err := writer{exact: true, flush: flush}.stage(root, name, content, perm)
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	err = root.Link(staged.temp, name)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = createInPlace(root, name, content, perm) // a file system without hard links
	}
	if err = errors.Join(err, staged.Discard()); err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	return SyncFolder(root, ".")
}

func createInPlace(root *os.Root, name string, content []byte, perm fs.FileMode) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm.Perm())
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// MkdirAll makes a folder and its missing parents, as os.MkdirAll does, and flushes their entries: a flushed file would be lost with a
// folder that is not flushed.
func MkdirAll(path string, perm fs.FileMode) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	var parents []string // of what is missing, innermost first
	for at := path; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) || filepath.Dir(at) == at {
			break // whatever else is wrong there, making it says so better
		}
		parents = append(parents, filepath.Dir(at))
	}
	if err := os.MkdirAll(path, perm); err != nil {
		return err
	}
	for _, parent := range parents {
		if err := syncFolder(parent); err != nil {
			return fmt.Errorf("flush folder %s: %w", parent, err)
		}
	}
	return nil
}

func syncFolder(path string) error {
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer root.Close()
	return SyncFolder(root, ".")
}
