package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/gofrs/flock"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

const (
	// lockName is fleetctl's own lock in the .git folder. The kernel releases it when its holder dies.
	lockName = "fleetctl.lock"
	lockWait = 10 * time.Second
	lockPoll = 25 * time.Millisecond // a wait that a context can end has to poll for both locks
)

// underWay are the files in .git that exist during a merge, a rebase or a cherry-pick, which a commit would spoil.
var underWay = []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply"}

// lock is the right to change the index, the working tree and the branch. It keeps git and other fleetctl processes from changing them.
type lock struct {
	own     *flock.Flock
	gitDir  string
	disk    *durable
	index   *index.Index
	entries map[string]*index.Entry
	assumed map[string]bool // the files that are marked as assume-unchanged
	changed bool
}

// acquire takes fleetctl's lock and git's lock of the index, and reads the index. It waits up to lockWait. Then the error matches ErrBusy.
func (r *Repo) acquire(ctx context.Context) (_ *lock, err error) {
	for _, name := range underWay {
		if _, err := os.Lstat(filepath.Join(r.gitDir, name)); err == nil {
			return nil, diag.Errorf("finish or abort it; `git status` says how",
				"%w: a merge, rebase or cherry-pick is under way in %s", ErrBusy, r.dir)
		}
	}
	wait, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	l := &lock{own: flock.New(filepath.Join(r.gitDir, lockName)), gitDir: r.gitDir, disk: r.disk}
	if _, err := l.own.TryLockContext(wait, lockPoll); err != nil {
		return nil, busy(ctx, err, "another fleetctl works in "+r.dir, "wait for it to end")
	}
	defer func() {
		if err != nil {
			_ = l.own.Unlock() // the first error is the cause
		}
	}()
	if err := shareLock(r.gitDir, l.path(lockName)); err != nil {
		return nil, err
	}
	if err := r.sweepGitDir(); err != nil {
		return nil, err
	}
	if err := l.lockIndex(wait); err != nil {
		return nil, busy(ctx, err, "git works in "+r.dir, "wait for it to end; if no git runs there, remove "+l.path("index.lock"))
	}
	if err := l.readIndex(); err != nil {
		return nil, errors.Join(err, os.Remove(l.path("index.lock")))
	}
	err = r.recover(ctx, l)
	if err == nil {
		err = r.sweepWorktree(l)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(l.path("index.lock")))
	}
	return l, nil
}

func busy(ctx context.Context, err error, what, hint string) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return diag.Errorf(hint, "%w: %s", ErrBusy, what)
	}
	return fmt.Errorf("lock the repository: %w", err)
}

func (l *lock) path(name string) string { return filepath.Join(l.gitDir, name) }

// lockIndex takes git's lock of the index.
func (l *lock) lockIndex(ctx context.Context) error {
	return lockAsGit(ctx, l.path("index"), l.path(lockName+".index"))
}

func (l *lock) readIndex() error { return l.readIndexFrom(l.path("index")) }

func (l *lock) readIndexFrom(path string) error {
	l.index, l.entries, l.assumed = &index.Index{Version: 2}, map[string]*index.Entry{}, nil
	content, err := within.Named(path, maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if l.index, l.assumed, err = decodeIndex(content); err != nil {
		return diag.Errorf("split and sparse indexes are not supported: git update-index --no-split-index; git sparse-checkout disable",
			"read %s: %w", path, err)
	}
	for _, e := range l.index.Entries {
		if e.Stage != 0 { // index.Merged, go-git's name for it, is 1
			return diag.Errorf("resolve it; `git status` says how", "%w: %s has a merge conflict", ErrBusy, e.Name)
		}
		l.entries[e.Name] = e
	}
	return nil
}

// release writes the index if it has changed, and releases both locks.
func (l *lock) release() error {
	var err error
	if l.changed {
		err = l.writeIndex()
	}
	err = errors.Join(err, os.Remove(l.path("index.lock")), l.own.Unlock())
	if err != nil {
		return fmt.Errorf("unlock the repository: %w", err)
	}
	return nil
}

// writeIndex replaces the index atomically: a reader sees the old or the new index.
func (l *lock) writeIndex() error {
	content, err := l.encodeIndex()
	if err != nil {
		return err
	}
	if err := l.replace("index", content); err != nil {
		return fmt.Errorf("write the index: %w", err)
	}
	l.changed = false
	return nil
}

// replace replaces a file of .git atomically, after it has flushed the objects that the file names. The users of the repository can read
// and write the file.
func (l *lock) replace(name string, content []byte) error {
	if err := l.disk.flush(); err != nil {
		return err
	}
	perm, err := sharedPerm(l.gitDir, 0o666)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(l.gitDir)
	if err != nil {
		return err
	}
	defer root.Close()
	return atomicfile.Replace(root, name, content, perm, true)
}

func (l *lock) encodeIndex() ([]byte, error) {
	l.index.Entries = l.index.Entries[:0]
	for _, e := range l.entries {
		l.index.Entries = append(l.index.Entries, e)
	}
	l.index.Cache, l.index.ResolveUndo, l.index.EndOfIndexEntry = nil, nil, nil // they describe the old entries
	return encodeIndex(l.index, l.assumed)
}
