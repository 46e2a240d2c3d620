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

// checkTarget refuses a folder with files that do not belong to a bundle, because Close removes files that the index does not need.
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
			return diag.Errorf("give a new or empty folder, or the folder of a bundle",
				"the folder is not empty and not a bundle: it has %q", e.Name())
		}
	}
	return nil
}

// errLocked is the error of Create if another Writer writes to the folder.
var errLocked = diag.Errorf("wait until the other process has finished", "another process is writing to this bundle")

// takeLock takes the lock that keeps other processes from writing to the bundle. The system frees the lock when the process ends.
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
	case !guards: // the last holder has removed the lock file
		return nil, errLocked
	}
	return lock, nil
}
