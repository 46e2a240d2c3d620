package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// origin is the remote that fleetctl makes.
const origin = "origin"

// endRebase is the hint during a rebase, in which git refuses to switch to a branch.
const endRebase = "a rebase is under way, finish or abort it: git rebase --continue, or git rebase --abort"

// Repo is a repository with a working tree. Its methods read the disk each time, because another program may have changed it.
//
// Only one goroutine at a time may use a Repo. Several processes may work in one repository: a method that changes the index, the working
// tree or a branch waits a few seconds for the others, and then returns an error that matches ErrBusy. A kill may interrupt a change of
// branch, index and working tree. Recover undoes such a change, and so does the next method that changes something.
type Repo struct {
	dir    string
	gitDir string
	git    *git.Repository
	disk   *durable
	swept  bool // the files of killed runs in the working tree are removed
	// left has the files that the hooks of a commit have changed on disk and not staged, by their paths.
	left       map[string]diskFile
	leftCommit plumbing.Hash

	// NoVerify skips the hooks that may refuse a commit or a push: pre-commit, commit-msg and pre-push.
	NoVerify bool
}

// Open returns the repository whose working tree is dir. The error matches ErrNotARepository if there is none.
func Open(dir string) (*Repo, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	gitDir, err := dotGit(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, diag.Errorf("", "%w: %s", ErrNotARepository, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open the git repository %s: %w", dir, err)
	}
	r := &Repo{dir: dir, gitDir: gitDir}
	if r.git, r.disk, err = openOnDisk(dir, gitDir, r.commonDir()); err != nil {
		return nil, err
	}
	return r, nil
}

// maxPointer bounds the size of a file that names a folder.
const maxPointer = 64 << 10

// maxConfig bounds the size of a file with git's configuration, and maxIndex that of an index, which has about a hundred bytes per file.
const (
	maxConfig = 16 << 20
	maxIndex  = 1 << 30
)

// WorkTree is the working tree of a repository.
type WorkTree struct {
	// Top is the top folder of the working tree. Common is the .git folder that all working trees of the repository share. Both paths are
	// without symbolic links.
	Top, Common string
}

// WorkTreeOf finds the working tree that contains a folder. If there is none, the folder itself is Top, and Common is empty. WorkTreeOf
// reads no settings of the repository.
func WorkTreeOf(dir string) (WorkTree, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return WorkTree{}, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return WorkTree{}, err
	}
	for top := dir; ; top = filepath.Dir(top) {
		gitDir, err := dotGit(top)
		if errors.Is(err, fs.ErrNotExist) {
			if top == filepath.Dir(top) {
				return WorkTree{Top: dir, Common: dir}, nil
			}
			continue
		}
		if err != nil {
			return WorkTree{}, err
		}
		common := (&Repo{gitDir: gitDir}).commonDir()
		if common, err = filepath.EvalSymlinks(common); err != nil {
			return WorkTree{}, err
		}
		return WorkTree{Top: top, Common: common}, nil
	}
}

// dotGit returns the folder with HEAD and the index: .git, or, for a linked working tree, the folder that .git names.
func dotGit(dir string) (string, error) {
	path := filepath.Join(dir, git.GitDirName)
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return path, err
	}
	content, err := within.Named(path, maxPointer)
	if err != nil {
		return "", err
	}
	target, ok := strings.CutPrefix(strings.TrimSpace(string(content)), "gitdir: ")
	if !ok {
		return "", fmt.Errorf("%w: %s", ErrNotARepository, dir)
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(dir, target)
	}
	return target, nil
}

// Branch returns the name of the checked out branch. The error matches ErrDetached if HEAD is no branch.
func (r *Repo) Branch() (string, error) {
	name, _, err := r.head()
	return name.Short(), err
}

// Head returns the commit of the checked out branch as 40 hexadecimal digits, or "" if the branch has none yet.
func (r *Repo) Head() (string, error) {
	_, hash, err := r.head()
	if err != nil || hash.IsZero() {
		return "", err
	}
	return hash.String(), nil
}

func (r *Repo) head() (plumbing.ReferenceName, plumbing.Hash, error) {
	ref, err := r.git.Storer.Reference(plumbing.HEAD)
	if err != nil {
		return "", plumbing.ZeroHash, fmt.Errorf("read HEAD of %s: %w", r.dir, err)
	}
	if ref.Type() != plumbing.SymbolicReference {
		hint := "check out the branch: git switch NAME"
		for name, way := range map[string]string{
			"rebase-merge": endRebase, "rebase-apply": endRebase, "BISECT_LOG": "a bisection is under way, end it: git bisect reset",
		} {
			if _, err := os.Lstat(filepath.Join(r.gitDir, name)); err == nil {
				hint = way
			}
		}
		return "", plumbing.ZeroHash, diag.Errorf(hint, "%w in %s", ErrDetached, r.dir)
	}
	at, err := r.git.Storer.Reference(ref.Target())
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return ref.Target(), plumbing.ZeroHash, nil
	}
	if err != nil {
		return "", plumbing.ZeroHash, fmt.Errorf("read %s of %s: %w", ref.Target(), r.dir, err)
	}
	if at.Type() == plumbing.SymbolicReference {
		return "", plumbing.ZeroHash, diag.Errorf("check out that branch: "+diag.ShellCommand("git", "switch", at.Target().Short()),
			"the branch %s of %s is a name for another branch, %s", ref.Target().Short(), r.dir, at.Target().Short())
	}
	return ref.Target(), at.Hash(), nil
}

// Remote returns the URL to which the checked out branch is pushed, and the branch's name there. If the repository has no remote, the URL
// is "", and branch is the local name.
func (r *Repo) Remote() (url, branch string, err error) {
	t, err := r.tracking()
	if err != nil {
		return "", "", err
	}
	return t.url, t.branch, nil
}

// RemoteHead returns the commit that the remote branch had at the last fetch or push; "" if it was never fetched or pushed.
func (r *Repo) RemoteHead() (string, error) {
	t, err := r.tracking()
	if err != nil {
		return "", err
	}
	known, err := r.reference(t.ref)
	if err != nil || known.IsZero() {
		return "", err
	}
	return known.String(), nil
}

// DefaultBranch returns the default branch that the remote origin had when it was cloned; "" if the repository does not know it.
func (r *Repo) DefaultBranch() (string, error) {
	ref, err := r.git.Storer.Reference(plumbing.NewRemoteHEADReferenceName(origin))
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the default branch of %s: %w", r.dir, err)
	}
	prefix := plumbing.NewRemoteReferenceName(origin, "").String()
	branch, ok := strings.CutPrefix(ref.Target().String(), prefix)
	if !ok {
		return "", nil
	}
	return branch, nil
}

// CheckRemote returns an error if fleetctl cannot push to the URL of the remote (ErrURL), if git pushes to several addresses of the remote
// (ErrPushElsewhere), or if the branch follows none of several remotes. It makes no connection.
func (r *Repo) CheckRemote() error {
	t, err := r.tracking()
	if err != nil {
		return err
	}
	if t.url == "" {
		if err := r.noRemote(t); !errors.Is(err, ErrURL) {
			return err
		}
		return nil
	}
	for _, a := range []address{t.address, t.to} {
		if _, err := parseEndpoint(a.url); err != nil {
			return t.refused(err)
		}
	}
	return t.checkAddresses()
}

// EnsureRemote adds url as the remote origin, if there is no such remote yet, and tells whether it did. If origin has another URL, the
// error names both.
func (r *Repo) EnsureRemote(url string) (bool, error) {
	if _, err := parseEndpoint(url); err != nil {
		return false, err
	}
	there, err := r.readConfig()
	if err != nil {
		return false, err
	}
	if urls := there.lists["remote."+origin+".url"]; len(urls) > 0 {
		if urls[0] == url || there.rewritten(urls[0], "insteadof").url == url {
			return false, nil
		}
		return false, diag.Errorf(diag.ShellCommand("git", "remote", "set-url", "origin", url),
			"the remote origin of %s is another repository than %s", r.dir, url)
	}
	cfg, err := r.git.Storer.Config()
	if err != nil {
		return false, fmt.Errorf("read the configuration of %s: %w", r.dir, err)
	}
	cfg.Remotes[origin] = originConfig(url)
	if err := r.git.Storer.SetConfig(cfg); err != nil {
		return false, fmt.Errorf("write the configuration of %s: %w", r.dir, err)
	}
	return true, nil
}

func originConfig(url string) *config.RemoteConfig {
	return &config.RemoteConfig{Name: origin, URLs: []string{url}, Fetch: []config.RefSpec{"+refs/heads/*:refs/remotes/origin/*"}}
}

func (r *Repo) unchanged(ctx context.Context, w *worktree, p string) (bool, error) {
	_, head, err := r.head()
	if err != nil {
		return false, err
	}
	c, err := r.git.CommitObject(head)
	if err != nil {
		return false, err
	}
	f, err := c.File(p)
	if err != nil {
		return false, err
	}
	if info, err := w.root.Lstat(filepath.FromSlash(p)); err != nil || !w.sameMode(info, f.Mode) {
		return false, err
	}
	return w.anyOf(ctx, p, file{f.Mode, f.Hash})
}

// CommitsAhead returns the number of commits of the checked out branch that the remote branch did not have at the last fetch or push.
func (r *Repo) CommitsAhead(ctx context.Context) (int, error) {
	subjects, err := r.Unpushed(ctx)
	return len(subjects), err
}

// Unpushed returns the commits that CommitsAhead counts, each as a short hash and its subject, newest first.
func (r *Repo) Unpushed(ctx context.Context) ([]string, error) {
	t, err := r.tracking()
	if err != nil {
		return nil, err
	}
	_, head, err := r.head()
	if err != nil || head.IsZero() {
		return nil, err
	}
	known, err := r.reference(t.ref)
	if err != nil {
		return nil, err
	}
	return r.subjects(ctx, head, known)
}

// Unpublished returns the commits of the checked out branch that a push would add to the remote, as it was at the last fetch or push, each
// as a short hash and its subject, newest first. A branch that the remote does not have yet adds what no other branch of the remote has.
func (r *Repo) Unpublished(ctx context.Context) ([]string, error) {
	t, err := r.tracking()
	if err != nil {
		return nil, err
	}
	known, err := r.reference(t.ref)
	if err != nil {
		return nil, err
	}
	if !known.IsZero() {
		return r.Unpushed(ctx)
	}
	_, head, err := r.head()
	if err != nil || head.IsZero() {
		return nil, err
	}
	others, err := r.remoteBranches(t.remote)
	if err != nil {
		return nil, err
	}
	return r.subjects(ctx, head, others...)
}

// remoteBranches returns the commits of all branches of a remote, as they were at the last fetch or push.
func (r *Repo) remoteBranches(remote string) ([]plumbing.Hash, error) {
	refs, err := r.git.Storer.IterReferences()
	if err != nil {
		return nil, fmt.Errorf("list the branches of %s: %w", remote, err)
	}
	var all []plumbing.Hash
	err = refs.ForEach(func(ref *plumbing.Reference) error {
		if ref.Type() == plumbing.HashReference && strings.HasPrefix(ref.Name().String(), "refs/remotes/"+remote+"/") {
			all = append(all, ref.Hash())
		}
		return nil
	})
	return all, err
}

// subjects returns the commits that are reachable from tip and from none of the bases, as Unpushed does.
func (r *Repo) subjects(ctx context.Context, tip plumbing.Hash, bases ...plumbing.Hash) ([]string, error) {
	h, err := newHistory(r.git.Storer)
	if err != nil {
		return nil, err
	}
	commits, err := h.between(ctx, tip, bases...)
	var subjects []string
	for _, c := range commits {
		subject, _, _ := strings.Cut(c.Message, "\n")
		subjects = append(subjects, fmt.Sprintf("%.8s %s", c.Hash, subject))
	}
	return subjects, err
}

// reference returns the commit of a reference, zero if there is none.
func (r *Repo) reference(name plumbing.ReferenceName) (plumbing.Hash, error) {
	ref, err := r.git.Storer.Reference(name)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return plumbing.ZeroHash, nil
	}
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return ref.Hash(), nil
}

// treeOf returns the root tree of a commit. The zero commit has the zero tree.
func treeOf(store storage.Storer, commit plumbing.Hash) (plumbing.Hash, error) {
	if commit.IsZero() {
		return plumbing.ZeroHash, nil
	}
	c, err := object.GetCommit(store, commit)
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("read commit %s: %w", commit, here(err))
	}
	return c.TreeHash, nil
}
