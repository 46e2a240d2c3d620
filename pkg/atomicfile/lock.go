package atomicfile

import (
	"errors"
	"io/fs"
	"os"
)

// FileLock is a *flock.Flock.
type FileLock interface {
	Path() string
	Stat() (fs.FileInfo, error)
	Unlock() error
}

// Guards tells whether a lock that is held keeps others out, and releases it where it does not: who had it before may have removed the file
// between its opening and its locking here, and whoever comes next makes another one. Then it is to be taken anew.
func Guards(lock FileLock) (bool, error) {
	held, err := lock.Stat()
	if err != nil {
		return false, errors.Join(err, lock.Unlock())
	}
	now, err := os.Stat(lock.Path())
	switch {
	case err == nil && os.SameFile(held, now):
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	return false, errors.Join(err, lock.Unlock())
}
