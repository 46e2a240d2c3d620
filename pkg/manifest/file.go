// Package manifest has generated files, and writes them to the disk. A ChangeSet shows what it would change in a folder. It applies all
// changes or none, and never outside of that folder. WriteFile replaces one file atomically.
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

// SafeJoin joins root and a relative slash-separated path name. It returns an error if name is absolute or empty, or if its text leads out
// of root. It does not look at the disk; ChangeSet.Apply also refuses symbolic links.
func SafeJoin(root, name string) (string, error) {
	local, err := localPath(name)
	if err != nil {
		return "", err
	}
	return filepath.Join(root, local), nil
}

// localPath turns name into a clean path of this system that always stays below the folder that it is joined to.
func localPath(name string) (string, error) {
	clean := path.Clean(name)
	local := filepath.FromSlash(clean)
	if name == "" || clean == "." || strings.ContainsRune(name, 0) || path.IsAbs(name) || !filepath.IsLocal(local) {
		return "", fmt.Errorf("path %q does not stay inside its folder", name)
	}
	return local, nil
}

// inRepo is localPath for a file of a Git repository. It refuses Git's own folder, because files in it (hooks, configuration) run programs.
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
