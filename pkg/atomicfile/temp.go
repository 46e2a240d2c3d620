package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// tempKinds begins the names of what one run needs and no other, where the system keeps such.
const tempKinds = "fleetctl-"

// TempFolder makes a folder in dir, or where the system keeps what is temporary if that is "", for this user alone, and returns what
// removes it. It may hold a whole repository, or what is nobody's business: what killed runs have left of those goes first.
func TempFolder(dir, kind string) (path string, remove func() error, err error) {
	if dir == "" {
		dir = os.TempDir()
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

// SweepTemp removes the folders that killed runs of TempFolder have left in dir, or where the system keeps what is temporary if that is "".
func SweepTemp(dir string) error {
	if dir == "" {
		dir = os.TempDir()
	}
	if !holdsOpen {
		return nil // nothing tells there whose they are
	}
	return sweep(dir, func(of string) bool { return strings.HasPrefix(of, tempKinds) })
}
