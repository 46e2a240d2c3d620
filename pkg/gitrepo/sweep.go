package gitrepo

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
)

// sweepGitDir removes files of killed runs from .git. The caller holds the lock.
func (r *Repo) sweepGitDir() error {
	for _, dir := range []string{r.gitDir, filepath.Join(r.commonDir(), asideDir)} {
		if err := atomicfile.Sweep(dir); err != nil {
			return err
		}
	}
	return errors.Join(ignoreMissing(os.Remove(filepath.Join(r.gitDir, hookIndexFile))), removeAbandoned(r.dir))
}

// sweepWorktree removes temporary files that killed runs have left in the working tree, once for each Repo. A committed or staged file
// belongs to the user, whatever its name. So does every file of another repository.
func (r *Repo) sweepWorktree(l *lock) error {
	if r.swept {
		return nil
	}
	root, err := os.OpenRoot(r.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	err = atomicfile.SweepTree(root, true, func(name string, isDir bool) bool {
		if !isDir {
			return l.entries[name] != nil
		}
		if name == "." {
			return false
		}
		_, err := root.Lstat(filepath.FromSlash(path.Join(name, ".git")))
		return path.Base(name) == ".git" || err == nil
	})
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	r.swept = true
	return nil
}
