package fleetrepo

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
)

// NotOwn returns names of files without those that fleetctl reads at the top of a fleet repo whether or not Git has them: who tries
// fleetctl out may have told Git to ignore them.
func NotOwn(names []string) []string {
	own := []string{v1alpha1.FileName, v1alpha1.LockFileName, IdentityFile}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(own, name) })
}

// Matters returns the function that tells whether a file of the repository in dir may be part of the fleet. In a repository that fleetctl
// has laid out, these are the files in the folders of the layout, because other folders may hold anything. In every other repository, all
// files may be.
func Matters(dir string) func(file string) bool {
	fleet, err := v1alpha1.Load(filepath.Join(dir, v1alpha1.FileName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return func(string) bool { return false } // who reads the repo says what is wrong with fleet.yaml
	}
	if err != nil || fleet.HasPaths() {
		return func(string) bool { return true }
	}
	return func(file string) bool {
		top, _, inFolder := strings.Cut(file, "/")
		if !inFolder {
			return slices.Contains([]string{v1alpha1.FileName, v1alpha1.LockFileName, IdentityFile}, file)
		}
		return top == "providers" || slices.Contains(sharedDirs, top)
	}
}
