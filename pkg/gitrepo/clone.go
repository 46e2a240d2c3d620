package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/gofrs/flock"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// makingPrefix begins the name of a .git folder that is being made. The folder is renamed to .git once it is complete.
const makingPrefix = ".git-fleetctl-"

// InitLocal makes dir a repository without a remote and without a commit, with branch checked out. Files in dir stay as they are. If dir is
// a repository already, InitLocal opens it as it is.
func InitLocal(dir, branch string) (*Repo, error) {
	repo, err := Open(dir)
	if err == nil || !errors.Is(err, ErrNotARepository) {
		return repo, err
	}
	err = makeGitDir(dir, branch, nil)
	if err != nil {
		return nil, diag.Wrap("make a git repository in "+dir, err, "")
	}
	return Open(dir)
}

// Clone makes dir a working tree of branch of the remote repository. The clone is shallow if the server supports that. If the remote is
// empty or has no such branch, the local branch has no commit. Existing files in dir stay. If the branch has one of them with other
// content, the error is a *DirtyError, and Clone changes nothing. Network errors are those of Probe. After a kill, either Clone makes the
// repository again, or Open opens it and Sync completes it.
func Clone(ctx context.Context, url string, auth Auth, branch, dir string) (*Repo, error) {
	if _, err := Open(dir); !errors.Is(err, ErrNotARepository) {
		if err == nil {
			err = diag.Errorf("use this repository, or choose another folder", "there is already a git repository in %s", dir)
		}
		return nil, err
	}
	r, err := openNamed(url, auth)
	if err != nil {
		return nil, err
	}
	var head plumbing.Hash
	err = makeGitDir(dir, branch, func(store storage.Storer) error {
		if err := setOrigin(store, url, branch); err != nil {
			return err
		}
		if head, err = r.fetchBranch(ctx, store, branch); err != nil {
			return r.fail("clone", err)
		}
		return checkFolder(ctx, dir, store, head)
	})
	if err != nil {
		return nil, err
	}
	repo, err := Open(dir)
	if err != nil || head.IsZero() {
		return repo, err
	}
	if err := repo.fastForward(ctx, head); err != nil {
		return nil, fmt.Errorf("check out %s in %s: %w", branch, dir, err)
	}
	return repo, nil
}

func (r *remote) fetchBranch(ctx context.Context, store storage.Storer, branch string) (plumbing.Hash, error) {
	got, err := r.fetch(ctx, store, branch, nil)
	if err != nil || got.head.IsZero() {
		return plumbing.ZeroHash, err
	}
	return got.head, store.SetReference(plumbing.NewHashReference(plumbing.NewRemoteReferenceName(origin, branch), got.head))
}

func setOrigin(store storage.Storer, url, branch string) error {
	cfg, err := store.Config()
	if err != nil {
		return err
	}
	cfg.Remotes[origin] = originConfig(url)
	cfg.Branches[branch] = &config.Branch{Name: branch, Remote: origin, Merge: plumbing.NewBranchReferenceName(branch)}
	return store.SetConfig(cfg)
}

// checkFolder returns a *DirtyError if dir has files of the commit with another content.
func checkFolder(ctx context.Context, dir string, store storage.Storer, commit plumbing.Hash) error {
	tree, err := treeOf(store, commit)
	if err != nil {
		return err
	}
	changes, err := diffTrees(ctx, store, plumbing.ZeroHash, tree)
	if err != nil {
		return err
	}
	w, err := openWorktree(dir, store)
	if err != nil {
		return err
	}
	defer w.close()
	dirty, err := w.conflicts(ctx, changes)
	return errors.Join(err, dirtyError(dirty))
}

// makeGitDir makes dir/.git under another name, calls fill, and renames the folder. If anything fails, it removes the folder. The next run
// removes the folder of a killed run.
func makeGitDir(dir, branch string, fill func(storage.Storer) error) (err error) {
	if err := atomicfile.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if err := removeAbandoned(dir); err != nil {
		return err
	}
	making, err := os.MkdirTemp(dir, makingPrefix+"*")
	if err != nil {
		return err
	}
	own := flock.New(filepath.Join(making, lockName))
	if err := own.Lock(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, own.Close(), os.RemoveAll(making))
		}
	}()
	if err := os.Chmod(making, 0o755); err != nil { //nolint:gosec // git uses this mode too
		return err
	}
	store := filesystem.NewStorage(osfs.New(making), cache.NewObjectLRUDefault())
	if _, err := git.InitWithOptions(store, nil, git.InitOptions{DefaultBranch: plumbing.NewBranchReferenceName(branch)}); err != nil {
		return err
	}
	if err := notBare(store); err != nil {
		return err
	}
	if fill != nil {
		if err := fill(store); err != nil {
			return err
		}
	}
	if err := errors.Join(store.Close(), own.Close()); err != nil {
		return err
	}
	if err := atomicfile.SyncTree(making); err != nil {
		return err
	}
	if err := os.Rename(making, filepath.Join(dir, git.GitDirName)); err != nil {
		return err
	}
	return syncFolder(dir)
}

func syncFolder(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return atomicfile.SyncFolder(root, ".")
}

func notBare(store storage.Storer) error {
	cfg, err := store.Config()
	if err != nil {
		return err
	}
	cfg.Core.IsBare = false
	core := cfg.Raw.Section("core")
	core.SetOption("bare", "false")
	if runtime.GOOS == "windows" { // as git init sets it there
		core.SetOption("filemode", "false")
		core.SetOption("ignorecase", "true")
	}
	return store.SetConfig(cfg)
}

// removeAbandoned removes incomplete .git folders of killed runs. It knows them because nobody holds their lock.
func removeAbandoned(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), makingPrefix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		own := flock.New(filepath.Join(path, lockName))
		free, err := own.TryLock()
		if err != nil || !free {
			continue // another run makes this folder right now
		}
		if err := errors.Join(own.Close(), os.RemoveAll(path)); err != nil {
			return err
		}
	}
	return nil
}
