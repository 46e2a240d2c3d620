package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/gofrs/flock"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// git changes a file X of its folder only while it holds the lock file X.lock. A program that replaces X without this lock can lose its
// change to a git that runs at the same moment: `git gc` packs the old value of a branch, and then removes the file with the new value.

const (
	// gitLockEnding is the suffix that git adds to the name of a locked file.
	gitLockEnding = ".lock"
	// gitLockMark is the content of fleetctl's lock files. fleetctl makes one only while it holds a lock of the kernel. So a run that holds
	// the kernel's lock and finds this mark knows that the run which made the file is dead. git's lock files are empty, or have the new
	// content of the file.
	gitLockMark = "fleetctl\n"
	// refWait bounds the wait for git before a write of a reference or of the configuration. git holds these locks only for moments.
	refWait = 2 * time.Second
)

// lockAsGit takes git's lock of a file. It writes the mark to the path mark first and then links it to the lock file, so that the lock file
// never exists without the mark. The caller must hold the kernel's lock that guards mark.
func lockAsGit(ctx context.Context, file, mark string) error {
	target := file + gitLockEnding
	if err := os.WriteFile(mark, []byte(gitLockMark), 0o600); err != nil {
		return err
	}
	defer func() { _ = os.Remove(mark) }() // it is only a second name of the lock file
	for {
		err := os.MkdirAll(filepath.Dir(target), 0o777) // git removes the folders of packed references
		if err == nil {
			err = os.Link(mark, target)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			err = createExclusive(target) // for a file system without hard links
		}
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if content, err := within.Named(target, int64(len(gitLockMark))); err == nil && bytes.Equal(content, []byte(gitLockMark)) {
			if err := os.Remove(target); err != nil {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPoll):
		}
	}
}

func createExclusive(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(gitLockMark)
	return errors.Join(err, f.Close())
}

// lock takes git's locks of files of the repository, so that neither git nor another fleetctl changes the files. It waits up to refWait.
// Then the error matches ErrBusy. release releases the locks.
func (w *durable) lock(ctx context.Context, files ...string) (release func() error, err error) {
	wait, cancel := context.WithTimeout(ctx, refWait)
	defer cancel()
	aside := filepath.Join(w.dir, asideDir)
	if err := os.MkdirAll(aside, 0o777); err != nil {
		return nil, err
	}
	own := flock.New(filepath.Join(aside, lockName))
	if _, err := own.TryLockContext(wait, lockPoll); err != nil {
		return nil, busy(ctx, err, "another fleetctl works in "+w.dir, "wait for it to end")
	}
	if err := shareLock(w.dir, own.Path()); err != nil {
		return nil, errors.Join(err, own.Unlock())
	}
	var taken []string
	release = func() error {
		var errs []error
		for _, file := range taken {
			errs = append(errs, ignoreMissing(os.Remove(file+gitLockEnding)))
		}
		w.mutex.Lock()
		w.held = nil
		w.mutex.Unlock()
		return errors.Join(append(errs, own.Unlock())...)
	}
	for _, file := range files {
		if err := lockAsGit(wait, file, filepath.Join(aside, lockName+".mark")); err != nil {
			err = busy(ctx, err, "git works on "+file, "wait for it to end; if no git runs there, remove "+file+gitLockEnding)
			return nil, errors.Join(err, release())
		}
		taken = append(taken, file)
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.held = taken
	return release, nil
}

// path returns the path of a file of the repository.
func (w *durable) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

// lockBranch takes the locks with which git moves the checked out branch. It returns an error if the branch is no longer at the commit
// from, so that a commit that somebody has made in the meantime is not lost.
func (r *Repo) lockBranch(ctx context.Context, branch plumbing.ReferenceName, from plumbing.Hash) (release func() error, err error) {
	release, err = r.disk.lock(ctx, filepath.Join(r.gitDir, plumbing.HEAD.String()), r.disk.path(branch.String()))
	if err != nil {
		return nil, err
	}
	now, at, err := r.head()
	if err == nil && (now != branch || at != from) {
		err = diag.Errorf("run the command again", "%w: somebody has committed to %s, or switched to another branch", ErrMoved, r.dir)
	}
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return release, nil
}

// newReference makes a reference. The error matches ErrTagExists if a reference of that name exists already with another value.
func (r *Repo) newReference(ctx context.Context, name plumbing.ReferenceName, hash plumbing.Hash) (err error) {
	release, err := r.disk.lock(ctx, r.disk.path(name.String()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	at, err := r.reference(name)
	switch {
	case err != nil || at == hash:
		return err
	case !at.IsZero():
		return diag.Errorf("run the command again", "%w: somebody has made %s in the meantime", ErrTagExists, name.Short())
	}
	all, err := r.settings(ctx)
	if err != nil {
		return err
	}
	return r.transact(ctx, all, transaction{[]plumbing.ReferenceName{name}, plumbing.ZeroHash, hash}, func() error {
		return r.git.Storer.SetReference(plumbing.NewHashReference(name, hash))
	})
}
