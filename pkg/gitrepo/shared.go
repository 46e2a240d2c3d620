package gitrepo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// A repository can belong to several users of a machine. core.sharedRepository says who reads and writes it, and git gives each of its
// files and folders a mode accordingly. fleetctl takes the mode from a folder that git has made, so that it need not know the setting, nor
// the umask of those who made the folder: what git lets another user do, fleetctl lets them do, too.

// sharedPerm returns the part of perm that the folder at dir gives. The owner keeps the whole part of the owner.
func sharedPerm(dir string, perm fs.FileMode) (fs.FileMode, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return 0, err
	}
	return perm & (info.Mode().Perm() | 0o700), nil
}

// shareLock gives a lock file in the folder at dir the mode of git's own files, so that each user of the repository can take the lock. A
// file that another user has made keeps its mode: that user has shared it.
func shareLock(dir, path string) error {
	perm, err := sharedPerm(dir, 0o666)
	if err != nil || runtime.GOOS == "windows" { // there the mode gives nobody access
		return err
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() == perm {
		return err
	}
	if err := os.Chmod(path, perm); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// shareFolders gives new folders below dir the mode of dir. names are relative to dir.
func shareFolders(dir string, names []string) error {
	if len(names) == 0 || runtime.GOOS == "windows" {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	mode := info.Mode() & (fs.ModePerm | fs.ModeSetgid)
	for _, name := range names {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			return err
		}
	}
	return nil
}

// missingFolders takes the result of foldersOfNew, and returns the folders that do not exist: all but the last.
func missingFolders(folders []string) []string { return folders[:len(folders)-1] }
