package fleetrepo

import (
	"io/fs"
	"os"
	"path/filepath"
)

// FindAny is Find for who can work without a fleet.yaml as well: then it is the top of the Git repository that dir is in, or dir itself.
// declared says that there is a fleet.yaml.
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

// mostUnversioned is how many files and folders there may be in one that is in no Git repository: it may be anything, such as somebody's
// home.
const mostUnversioned = 5000

func isTooMuch(dir string) bool {
	n := 0
	_ = filepath.WalkDir(dir, func(string, fs.DirEntry, error) error {
		if n++; n > mostUnversioned {
			return fs.SkipAll
		}
		return nil
	})
	return n > mostUnversioned
}
