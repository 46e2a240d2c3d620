package fleetrepo

import (
	"io/fs"
	"os"
	"path/filepath"
)

// FindAny is Find for callers that can work without a fleet.yaml. Without one it returns the top of the Git repository
// with dir, or dir itself. declared tells whether fleet.yaml exists.
func FindAny(dir string) (top string, declared bool, err error) {
	top, err = Find(dir)
	if err == nil {
		return top, true, nil
	}
	start, absErr := filepath.Abs(dir)
	if absErr != nil {
		return "", false, err
	}
	if info, statErr := os.Stat(start); statErr != nil || !info.IsDir() {
		return "", false, err
	}
	for at := start; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return at, false, nil
		}
		if filepath.Dir(at) == at {
			break
		}
	}
	if isTooMuch(start) {
		return "", false, err
	}
	return start, false, nil
}

// mostUnversioned bounds the files and folders in a folder outside of any Git repository, which may be a user's whole
// home folder.
const mostUnversioned = 5000

func isTooMuch(dir string) bool {
	n := 0
	if linked, err := filepath.EvalSymlinks(dir); err == nil { // WalkDir looks at a link, and not behind it
		dir = linked
	}
	_ = filepath.WalkDir(dir, func(string, fs.DirEntry, error) error {
		if n++; n > mostUnversioned {
			return fs.SkipAll
		}
		return nil
	})
	return n > mostUnversioned
}
