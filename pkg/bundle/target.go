package bundle

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// checkTarget refuses a folder with other files in it, because Close removes files that the index does not name.
func checkTarget(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch e.Name() {
		case layoutFile, indexFile, partialDir, "blobs":
		default:
			return diag.Errorf("name a new or empty folder, or one that holds a bundle",
				"the folder is not empty and not a bundle: it has %q", e.Name())
		}
	}
	return nil
}

// errLocked is the error of Create in a folder to which another Writer writes.
var errLocked = diag.Errorf("wait until it is done", "another process is writing to this bundle")

// takeLock keeps other processes from writing to the bundle. The system frees the lock when the process ends.
func takeLock(dir string) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(dir, partialDir, "lock"))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errLocked
	}
	switch guards, err := atomicfile.Guards(lock); {
	case err != nil:
		return nil, err
	case !guards: // its last holder has removed the lock file
		return nil, errLocked
	}
	return lock, nil
}
