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

// git changes a file X of its folder only while it has made X.lock. Whoever replaces X without that lock loses against a git that works at
// the same moment: `git gc` packs the old value of a branch, and then removes the file with the new one.

const (
	// gitLockEnding is what git puts behind the name of a file that it locks.
	gitLockEnding = ".lock"
	// gitLockMark is the content of such a lock of ours. Only the holder of a lock of the kernel makes one, so whoever holds that and finds
	// the mark knows that its maker is dead. git's own are empty, or begin with what becomes the file.
	gitLockMark = "fleetctl\n"
	// refWait is how long the write of a reference or of the configuration waits for git, which holds these locks for moments.
	refWait = 2 * time.Second
)

// lockAsGit takes git's lock of a file. mark is where the lock is made first, so that it has its mark from its first moment. The holder of
// the kernel's lock that guards mark calls it.
func lockAsGit(ctx context.Context, file, mark string) error {
	target := file + gitLockEnding
	if err := os.WriteFile(mark, []byte(gitLockMark), 0o600); err != nil {
		return err
	}
	defer func() { _ = os.Remove(mark) }() // a second name of the lock, or of no use any more
	for {
		err := os.MkdirAll(filepath.Dir(target), 0o777) // git removes folders of references that it has packed
		if err == nil {
			err = os.Link(mark, target)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			err = createExclusive(target) // a file system without hard links
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

// lock takes git's locks of files of the repository, which nobody of us has then either. It waits a little for others; then the error
// matches ErrBusy. release lets go of them.
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

// path is where a file of the repository is.
func (w *durable) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

// lockBranch takes the locks with which git moves the branch that is checked out, and looks whether it is still where the caller has seen
// it: who has committed meanwhile keeps that commit.
func (r *Repo) lockBranch(ctx context.Context, branch plumbing.ReferenceName, from plumbing.Hash) (release func() error, err error) {
	release, err = r.disk.lock(ctx, filepath.Join(r.gitDir, plumbing.HEAD.String()), r.disk.path(branch.String()))
	if err != nil {
		return nil, err
	}
	now, at, err := r.head()
	if err == nil && (now != branch || at != from) {
		err = diag.Errorf("run the command again", "%w: somebody committed to %s meanwhile, or switched to another branch", ErrDiverged, r.dir)
	}
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return release, nil
}

// newReference makes a reference. The error matches ErrTagExists if there is another one of that name by now.
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
		return diag.Errorf("run the command again", "%w: somebody has made %s meanwhile", ErrTagExists, name.Short())
	}
	all, err := r.settings(ctx)
	if err != nil {
		return err
	}
	return r.transact(ctx, all, transaction{[]plumbing.ReferenceName{name}, plumbing.ZeroHash, hash}, func() error {
		return r.git.Storer.SetReference(plumbing.NewHashReference(name, hash))
	})
}
