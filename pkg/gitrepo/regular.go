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

// endless are the kinds of files on which a reader may hang or read for ever. Everybody who may write into a folder can put one into the
// place of a file.
const endless = fs.ModeNamedPipe | fs.ModeSocket | fs.ModeDevice | fs.ModeCharDevice | fs.ModeIrregular

// regular is a folder on disk in which only regular files and folders are opened.
type regular struct{ billy.Filesystem }

func openFolder(dir string) billy.Filesystem { return &regular{osfs.New(dir)} }

// Open implements billy.Filesystem. For a file of another kind, the error matches within.ErrNotRegular.
func (r *regular) Open(name string) (billy.File, error) { return r.OpenFile(name, os.O_RDONLY, 0) }

// Chroot implements billy.Filesystem.
func (r *regular) Chroot(path string) (billy.Filesystem, error) {
	inner, err := r.Filesystem.Chroot(path)
	return &regular{inner}, err
}

// OpenFile implements billy.Filesystem. For a file of another kind, the error matches within.ErrNotRegular.
func (r *regular) OpenFile(name string, flag int, perm fs.FileMode) (billy.File, error) {
	info, err := r.Stat(name)
	if err == nil && info.Mode()&endless != 0 { // before the open, which would wait for the writer of a pipe
		return nil, &fs.PathError{Op: "open", Path: r.Join(r.Root(), name), Err: within.ErrNotRegular}
	}
	f, openErr := r.Filesystem.OpenFile(name, flag, perm)
	if openErr != nil || err != nil || flag != os.O_RDONLY {
		return f, openErr
	}
	if isLoose(name) {
		if err := checkLoose(f, r.Join(r.Root(), name), info.Size()); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return sized{File: f, of: r, name: name}, nil
}

// refuseEndless returns an error for a repository in which git would hang: one with a pipe, a device or a socket among the files of .git,
// except for the objects, or in the place of a file at the top of the working tree that git reads.
func refuseEndless(dir, gitDir, commonDir string) error {
	for _, name := range []string{conversion.File, ".gitignore"} {
		if err := refuseEndlessFile(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	for _, folder := range []string{gitDir, commonDir} {
		if err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist): // such as the lock of another program, which is gone now
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
	isEndless := err == nil && info.Mode()&endless != 0 // if Stat fails, the reader of the file reports the error
	if !isEndless {
		return nil
	}
	return diag.Errorf("find out who put it there, and remove it",
		"open the git repository: %s is a pipe, a device or a socket, on which git would hang", path)
}
