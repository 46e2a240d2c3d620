package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// tempKinds is the beginning of the names of a run's temporary folders in the system's folder for temporary files.
const tempKinds = "fleetctl-"

// TempFolder makes a temporary folder for this user alone, in dir, or in the system's folder for temporary files if dir is "". It returns
// the function that removes the folder. The folder may hold a whole repository, or secrets, so TempFolder first removes the folders that
// killed runs have left. Errors: in dir, another user could put something else in the place of the folder.
func TempFolder(dir, kind string) (path string, remove func() error, err error) {
	if dir == "" {
		dir = os.TempDir()
	}
	if err := checkTemp(dir); err != nil {
		return "", nil, err
	}
	_ = SweepTemp(dir) // what cannot be removed is in nobody's way
	f, err := NewFolder(filepath.Join(dir, tempKinds+kind), 0o700)
	if err != nil {
		return "", nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	return f.Path, func() error {
		return errors.Join(f.held.Close(), f.root.RemoveAll(filepath.Base(f.Path)), f.root.Close())
	}, nil
}

// SweepTemp removes the folders that killed runs of TempFolder have left in dir, or in the system's folder for temporary files if dir is
// "".
func SweepTemp(dir string) error {
	if dir == "" {
		dir = os.TempDir()
	}
	if !holdsOpen {
		return nil // nothing tells there whose they are
	}
	return sweep(dir, func(of string) bool { return strings.HasPrefix(of, tempKinds) })
}
