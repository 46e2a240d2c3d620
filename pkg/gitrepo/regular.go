package gitrepo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/internal/conversion"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// endless are the kinds of files whose reader may wait, or read, for ever: whoever may write into a folder can put one into the place of
// any file.
const endless = fs.ModeNamedPipe | fs.ModeSocket | fs.ModeDevice | fs.ModeCharDevice | fs.ModeIrregular

// regular is a folder on disk of which nothing is opened but files and folders.
type regular struct{ billy.Filesystem }

func openFolder(dir string) billy.Filesystem { return &regular{osfs.New(dir)} }

// Open is that of billy.Filesystem. Errors are also within.ErrNotRegular.
func (r *regular) Open(name string) (billy.File, error) { return r.OpenFile(name, os.O_RDONLY, 0) }

// Chroot is that of billy.Filesystem.
func (r *regular) Chroot(path string) (billy.Filesystem, error) {
	inner, err := r.Filesystem.Chroot(path)
	return &regular{inner}, err
}

// OpenFile is that of billy.Filesystem. Errors are also within.ErrNotRegular.
func (r *regular) OpenFile(name string, flag int, perm fs.FileMode) (billy.File, error) {
	if info, err := r.Stat(name); err == nil && info.Mode()&endless != 0 { // before it is opened: opening a pipe waits for who writes to it
		return nil, &fs.PathError{Op: "open", Path: r.Join(r.Root(), name), Err: within.ErrNotRegular}
	}
	return r.Filesystem.OpenFile(name, flag, perm)
}

// refuseEndless refuses a repository in which git itself would wait for ever, because a pipe, a device or a socket stands among the files
// of .git outside of its objects, or in the place of a file at the top of the working tree that git reads.
func refuseEndless(dir, gitDir, commonDir string) error {
	for _, name := range []string{conversion.File, ".gitignore"} {
		if err := refuseEndlessFile(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	for _, folder := range []string{gitDir, commonDir} {
		if err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist): // another program's lock, which is gone by now
				return nil
			case err != nil:
				return err
			case entry.IsDir() && isApart(folder, path):
				return fs.SkipDir
			case entry.IsDir() || entry.Type().IsRegular():
				return nil
			}
			return refuseEndlessFile(path)
		}); err != nil {
			return err
		}
		if gitDir == commonDir {
			break
		}
	}
	return nil
}

// isApart tells whether git can open the repository without reading a folder of .git: the objects, the histories of branches, other working
// trees and submodules.
func isApart(gitDir, path string) bool {
	switch name, err := filepath.Rel(gitDir, path); {
	case err != nil:
		return false
	case filepath.Dir(name) == "objects":
		return filepath.Base(name) != "info"
	default:
		return name == "logs" || name == "lfs" || name == "modules" || name == "worktrees"
	}
}

func refuseEndlessFile(path string) error {
	info, err := os.Stat(path)
	isEndless := err == nil && info.Mode()&endless != 0 // what is not there, or cannot be looked at, is for whoever reads it
	if !isEndless {
		return nil
	}
	return diag.Errorf("find out who put it there, and remove it",
		"open the git repository: %s is a pipe, a device or a socket, and git would wait for it for ever", path)
}
