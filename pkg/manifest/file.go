// Package manifest holds generated files and puts them on disk: a ChangeSet shows what it would do to a folder and does it
// all or not at all, never outside of that folder; WriteFile replaces one file atomically.
package manifest

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// File is one generated file.
type File struct {
	// Path is relative to the root that the file goes under, with forward slashes.
	Path string
	// Content is what the file holds, byte for byte.
	Content []byte
	// Mode is the file's permissions; 0 keeps those of an existing file and stands for 0644 (less the umask) for a new one.
	Mode fs.FileMode
}

// SafeJoin joins root and a relative slash-separated path name. It returns an error where name is absolute, empty, or leads
// out of root by its text. It does not look at the disk: ChangeSet.Apply is what also refuses symbolic links.
func SafeJoin(root, name string) (string, error) {
	local, err := localPath(name)
	if err != nil {
		return "", err
	}
	return filepath.Join(root, local), nil
}

// localPath turns name into a path of this system, clean and certain to stay below what it is joined to.
func localPath(name string) (string, error) {
	clean := path.Clean(name)
	local := filepath.FromSlash(clean)
	if name == "" || clean == "." || strings.ContainsRune(name, 0) || path.IsAbs(name) || !filepath.IsLocal(local) {
		return "", fmt.Errorf("path %q does not stay inside its folder", name)
	}
	return local, nil
}

// inRepo is localPath for a file of a Git repository: Git's own folder is refused, for what stands in it (hooks,
// configuration) runs programs.
func inRepo(name string) (string, error) {
	local, err := localPath(name)
	if err != nil {
		return "", err
	}
	isGit := func(part string) bool { return strings.EqualFold(part, ".git") }
	if slices.ContainsFunc(strings.Split(filepath.ToSlash(local), "/"), isGit) {
		return "", fmt.Errorf("path %q is inside of Git's own folder", name)
	}
	return local, nil
}
