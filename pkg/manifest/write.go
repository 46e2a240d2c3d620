package manifest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// defaultMode is what a new file gets, less the umask.
const defaultMode fs.FileMode = 0o644

// tempSuffix ends the name of every file that is not yet in its place. A process that is killed may leave one behind.
const tempSuffix = ".fleetctl-tmp"

// WriteFile replaces the file at path by content, or makes it, with exactly the permissions perm. Readers see the old or the
// new file, never a part, also across a crash. A symbolic link at path stays, and what it points to is replaced. The folder
// must exist.
func WriteFile(path string, content []byte, perm fs.FileMode) error {
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
	if err := replace(root, filepath.Base(target), content, perm, true); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// replace writes name below root through a temporary file beside it.
func replace(root *os.Root, name string, content []byte, perm fs.FileMode, exact bool) error {
	temp, err := stage(root, name, content, perm, exact)
	if err != nil {
		return err
	}
	if err := root.Rename(temp, name); err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	return syncFolder(root, filepath.Dir(name))
}

// stage writes content to a new file beside name, flushed to the disk, and returns its name. With exact the permissions are
// perm whatever the umask is.
func stage(root *os.Root, name string, content []byte, perm fs.FileMode, exact bool) (temp string, err error) {
	temp = filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+"."+rand.Text()[:10]+tempSuffix)
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm.Perm())
	if err != nil {
		return "", err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			err = errors.Join(err, root.Remove(temp))
		}
	}()
	if _, err := f.Write(content); err != nil {
		return "", err
	}
	if exact && runtime.GOOS != "windows" { // Windows has no such permissions
		if err := f.Chmod(perm.Perm()); err != nil {
			return "", err
		}
	}
	return temp, f.Sync()
}

// syncFolder flushes a folder's entries, so that a rename in it survives a crash.
func syncFolder(root *os.Root, name string) error {
	if runtime.GOOS == "windows" { // a folder cannot be flushed there
		return nil
	}
	dir, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
