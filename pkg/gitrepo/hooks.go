package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// ErrHook says that a hook of the user refuses the commit or the push.
var ErrHook = errors.New("a hook refuses")

const (
	hookPreCommit  = "pre-commit"
	hookPrepare    = "prepare-commit-msg"
	hookCommitMsg  = "commit-msg"
	hookPostCommit = "post-commit"
	hookPrePush    = "pre-push"
	// hookTransaction runs for every move of a reference. git has no option to skip it.
	hookTransaction = "reference-transaction"

	messageFile   = "COMMIT_EDITMSG"
	hookIndexFile = "index." + lockName + ".hooks" // the index that hooks see
)

// hook returns the path of a hook; "" if there is none, or if git would not run it.
func (r *Repo) hook(all settings, name string) (string, error) {
	dir := filepath.Join(r.commonDir(), "hooks")
	if named := all["core.hookspath"]; named != "" {
		dir = expand(named, filepath.Join(r.dir, "x"))
	}
	path := filepath.Join(dir, name)
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", nil //nolint:nilerr // there is none, or it cannot be run: git continues too
	}
	if runtime.GOOS == "windows" {
		if r.NoVerify {
			return "", nil
		}
		return "", diag.Errorf("give --no-verify, or commit the change yourself", "%w: %s is not run on Windows", ErrHook, path)
	}
	if info.Mode()&0o111 == 0 {
		return "", nil
	}
	return path, nil
}

// runHook runs a hook, if there is one, as git does: at the top of the working tree. The error quotes the hook's output.
func (r *Repo) runHook(ctx context.Context, all settings, name string, env []string, input string, args ...string) error {
	path, err := r.hook(all, name)
	if err != nil || path == "" {
		return err
	}
	if r.commonDir() != r.gitDir { // git sets it for linked working trees
		env = append(env, "GIT_DIR="+r.gitDir)
	}
	var output speech
	run := userProgram{path: path, args: args, dir: r.dir, input: []byte(input), stdout: &output, stderr: &output}
	run.env = environment(append(env, "GIT_EDITOR=:", "GIT_PREFIX=")...)
	if err := run.run(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		what := said(output.String())
		if what == "" {
			what = "it says nothing"
		}
		hint := "correct the problem that the hook reports; or give --no-verify, which skips the hook"
		if name == hookPrepare || name == hookTransaction {
			hint = "correct the problem that the hook reports; as in git, --no-verify does not skip this hook"
		}
		return diag.Errorf(hint, "%w: %s: %w: %s", ErrHook, name, err, what)
	}
	return nil
}

// anyHook tells whether the repository has one of these hooks.
func (r *Repo) anyHook(all settings, names ...string) (bool, error) {
	for _, name := range names {
		if path, err := r.hook(all, name); err != nil || path != "" {
			return true, err
		}
	}
	return false, nil
}

// verify runs the hooks for a commit before the commit is made, and returns the tree and the message after the hooks. As with git, the
// change is in the working tree while the hooks run, and in a separate index without other changes. Afterwards verify restores the working
// tree.
func (r *Repo) verify(
	ctx context.Context,
	w *worktree,
	l *lock,
	by identity,
	tree plumbing.Hash,
	v revision,
) (_ plumbing.Hash, message string, err error) {
	all := w.settings
	names := []string{hookPreCommit, hookPrepare, hookCommitMsg}
	if r.NoVerify {
		names = []string{hookPrepare} // git runs this hook also with --no-verify
	}
	if found, err := r.anyHook(all, names...); err != nil || !found {
		return tree, v.message, err
	}
	base, err := treeOf(r.git.Storer, v.base)
	if err != nil {
		return tree, "", err
	}
	steps, err := r.plan(ctx, w, l, base, tree, v.changes)
	if err != nil {
		return tree, "", err
	}
	if err := r.announce(l, steps, "", plumbing.ZeroHash); err != nil {
		return tree, "", err
	}
	defer func() { err = errors.Join(err, w.undo(context.WithoutCancel(ctx), steps), l.finish()) }()
	if err := w.apply(ctx, steps); err != nil {
		return tree, "", err
	}
	indexFile := filepath.Join(r.gitDir, hookIndexFile)
	defer func() { err = errors.Join(err, ignoreMissing(os.Remove(indexFile))) }()
	if err := r.writeHookIndex(ctx, w, l, indexFile, tree); err != nil {
		return tree, "", err
	}
	env := hookEnvironment(by.author, indexFile)
	if !r.NoVerify {
		if err := r.runHook(ctx, all, hookPreCommit, env, ""); err != nil {
			return tree, "", err
		}
		if tree, err = r.readHookIndex(ctx, indexFile, tree); err != nil {
			return tree, "", err
		}
	}
	message, err = r.verifyMessage(ctx, all, env, v.message)
	if err == nil && !v.apart {
		r.rememberLeft(w, steps)
	}
	return tree, message, err
}

// rememberLeft remembers the changes that hooks have made to files on disk and not staged. git commits the changes that a hook stages, and
// leaves the others in the working tree.
func (r *Repo) rememberLeft(w *worktree, steps []*step) {
	for _, s := range steps {
		if !s.write || s.mode == filemode.Symlink || s.mode == filemode.Submodule {
			continue
		}
		content, err := w.read(filepath.FromSlash(s.path))
		if err == nil && !bytes.Equal(content, s.content) {
			r.left[s.path] = diskFile{s.path, content, s.mode}
		}
	}
}

// keepLeft makes the steps to a commit keep the changes of rememberLeft.
func (r *Repo) keepLeft(steps []*step, commit plumbing.Hash) {
	if commit != r.leftCommit {
		return
	}
	for _, s := range steps {
		if f, ok := r.left[s.path]; ok && s.to.mode != filemode.Empty && !(s.write && bytes.Equal(s.content, f.content)) {
			s.write, s.remove, s.content, s.mode, s.stands = true, false, f.content, f.mode, plumbing.ZeroHash
		}
	}
}

// verifyMessage runs the hooks that see and may change the message, and returns the message.
func (r *Repo) verifyMessage(ctx context.Context, all settings, env []string, message string) (string, error) {
	file := filepath.Join(r.gitDir, messageFile)
	if err := os.WriteFile(file, []byte(message), 0o644); err != nil {
		return "", err
	}
	given := file
	if relative, err := filepath.Rel(r.dir, file); err == nil && filepath.IsLocal(relative) {
		given = relative
	}
	if err := r.runHook(ctx, all, hookPrepare, env, "", given, "message"); err != nil {
		return "", err
	}
	if !r.NoVerify {
		if err := r.runHook(ctx, all, hookCommitMsg, env, "", given); err != nil {
			return "", err
		}
	}
	content, err := within.Named(file, within.MostNamed)
	if err != nil {
		return "", err
	}
	if message, err = all.cleaned(string(content)); errors.Is(err, errNoMessage) {
		return "", fmt.Errorf("%w: they leave an empty message", ErrHook)
	}
	return message, err
}

// committed runs the post-commit hook after the commit. This hook cannot refuse the commit.
func (r *Repo) committed(ctx context.Context, commit plumbing.Hash) {
	all, err := r.settings(ctx)
	if err != nil {
		return
	}
	c, err := object.GetCommit(r.git.Storer, commit)
	if err != nil {
		return
	}
	indexFile := filepath.Join(r.gitDir, "index")
	if relative, err := filepath.Rel(r.dir, indexFile); err == nil && filepath.IsLocal(relative) {
		indexFile = relative
	}
	_ = r.runHook(ctx, all, hookPostCommit, hookEnvironment(c.Author, indexFile), "") // git ignores its exit code too
}

// hookEnvironment returns the environment variables that git sets for hooks.
func hookEnvironment(author object.Signature, indexFile string) []string {
	return []string{
		"GIT_INDEX_FILE=" + indexFile, "GIT_AUTHOR_NAME=" + author.Name, "GIT_AUTHOR_EMAIL=" + author.Email,
		fmt.Sprintf("GIT_AUTHOR_DATE=@%d %s", author.When.Unix(), author.When.Format("-0700")),
	}
}

// writeHookIndex writes the index of a commit to be made.
func (r *Repo) writeHookIndex(ctx context.Context, w *worktree, l *lock, path string, tree plumbing.Hash) error {
	files, err := diffTrees(ctx, r.git.Storer, plumbing.ZeroHash, tree)
	if err != nil {
		return err
	}
	next := &lock{index: &index.Index{Version: max(2, l.index.Version)}, gitDir: l.gitDir, entries: map[string]*index.Entry{}}
	for _, f := range files {
		e := &index.Entry{Name: f.path, Hash: f.to.hash, Mode: f.to.mode}
		if old := l.entries[f.path]; old != nil && old.Hash == e.Hash && old.Mode == e.Mode {
			e = old
		} else if info, err := w.root.Lstat(filepath.FromSlash(f.path)); err == nil && info.Mode().IsRegular() {
			if same, err := w.anyOf(ctx, f.path, f.to); err == nil && same {
				setStat(e, info)
			}
		}
		next.entries[f.path] = e
	}
	content, err := next.encodeIndex()
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}

// readHookIndex returns the tree of the index after the hooks. As with git, the commit has the files that hooks add.
func (r *Repo) readHookIndex(ctx context.Context, path string, tree plumbing.Hash) (plumbing.Hash, error) {
	left := &lock{gitDir: r.gitDir}
	if err := left.readIndexFrom(path); err != nil {
		return tree, err
	}
	files, err := diffTrees(ctx, r.git.Storer, plumbing.ZeroHash, tree)
	if err != nil {
		return tree, err
	}
	var changes []Change
	for _, f := range files {
		e := left.entries[f.path]
		delete(left.entries, f.path)
		switch {
		case e == nil:
			changes = append(changes, Change{Path: f.path, Delete: true})
		case e.Hash != f.to.hash || e.Mode != f.to.mode:
			changes = append(changes, Change{Path: f.path, entry: &object.TreeEntry{Mode: e.Mode, Hash: e.Hash}})
		}
	}
	for name, e := range left.entries {
		if !e.IntentToAdd {
			changes = append(changes, Change{Path: name, entry: &object.TreeEntry{Mode: e.Mode, Hash: e.Hash}})
		}
	}
	if len(changes) == 0 {
		return tree, nil
	}
	return applyChanges(r.git.Storer, tree, changes)
}

// verifyPush runs the pre-push hook, which may refuse the push.
func (r *Repo) verifyPush(
	ctx context.Context,
	remoteName, url, local string,
	commit plumbing.Hash,
	ref plumbing.ReferenceName,
	known plumbing.Hash,
) error {
	if r.NoVerify {
		return nil
	}
	all, err := r.settings(ctx)
	if err != nil {
		return err
	}
	return r.runHook(ctx, all, hookPrePush, nil, fmt.Sprintf("%s %s %s %s\n", local, commit, ref, known), remoteName, url)
}
