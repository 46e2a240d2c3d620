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

// Guards tells whether a lock that is held keeps others out, and releases it if it does not. The previous holder may have removed the file
// after it was opened and before it was locked here, and the next process then makes another file. Then it is to be taken anew.
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
