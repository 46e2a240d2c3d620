package change

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/forge"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// maxCA bounds how much of a file with certificate authorities is read.
const maxCA = 1 << 20

// destination is the place beyond this machine to which a change goes.
type destination struct {
	git  *gitrepo.Repo
	auth gitrepo.Auth
	// forge and base say where a pull request goes.
	forge forge.Options
	base  string
}

// made is a finished edit, with the files that it was made from.
type made struct {
	repo *fleetrepo.Repo
	edit *fleetrepo.Edit
	// git is the repository, branch the one that is checked out, and base its last commit ("" without a commit), for an edit that goes into
	// a commit.
	git    *gitrepo.Repo
	branch string
	base   string
	to     *destination
	done   func() error
	// onDisk is the same edit made from the working tree, if that has uncommitted files; nil otherwise.
	onDisk *fleetrepo.Edit
	// left are the files that the edit of the committed files would write, and that have other, uncommitted content in the working tree. This
	// content belongs to the user.
	left []string
}

// make makes the edit from the working tree, or from the committed files if it goes into a commit. An edit for the remote is made from
// the remote's files, because other commits may have been pushed and pull requests merged since the last pull. It is first made from the
// local tree, because a revision such as HEAD refers to that.
func (o Options) make(ctx context.Context) (*made, error) {
	m := &made{done: func() error { return nil }}
	var err error
	if !o.carries() {
		if m.repo, err = fleetrepo.Open(o.Dir); err != nil {
			return nil, err
		}
		if err := gitrepo.CheckSparse(ctx, m.repo.Dir, fleetrepo.Matters); err != nil {
			return nil, diag.Wrap("edit the fleet repo", err, diag.Hint(err)+"; --commit and --push work without them")
		}
		m.edit, err = o.judged(ctx, m.repo)
		return m, err
	}
	dir, err := fleetrepo.Find(o.Dir)
	if err != nil {
		return nil, err
	}
	m.git, err = gitrepo.OpenFor("commit", dir,
		"leave --commit, --push and --pr out, and commit it yourself: the fleet repo is not the top of a Git repository")
	if err != nil {
		return nil, cmp.Or(o.try(ctx, dir), err) // report a fault of the edit itself first
	}
	m.git.NoVerify = o.NoVerify
	if !o.DryRun {
		if err := m.git.Recover(ctx); err != nil {
			return nil, err
		}
	}
	if !o.DryRun && (o.Push || o.PullRequest) {
		if err := o.catchUp(ctx, m, dir); err != nil {
			return nil, err
		}
	}
	if m.branch, err = m.git.Branch(); err != nil {
		return nil, err
	}
	if m.base, err = m.git.Head(); err != nil {
		return nil, err
	}
	root, done, err := m.git.Copy(ctx)
	if err != nil {
		return nil, err
	}
	m.done = done
	if m.repo, err = fleetrepo.OpenCopy(root, dir); err == nil {
		m.edit, err = o.judged(ctx, m.repo)
	}
	if err == nil && root != dir {
		err = o.compare(ctx, m)
	} else if err != nil {
		err = o.needsUncommitted(ctx, m.git, root, dir, err)
	}
	if err != nil {
		return nil, errors.Join(err, done())
	}
	return m, nil
}

// judged makes the edit, and returns an error if the edit would make the fleet repo invalid.
func (o Options) judged(ctx context.Context, repo *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	e, err := o.edit(ctx, repo)
	if err == nil {
		err = o.judgeRepo(ctx, repo, e)
	}
	return e, err
}

// compare compares the edit with the same edit made from the working tree. An uncommitted file that the change needs belongs to the
// change if it has exactly the content that the change would write: this command, or an earlier or a killed one, has written it. A file
// with other content is left for its author to commit. A change that needs such a file is refused.
func (o Options) compare(ctx context.Context, m *made) error {
	repo, err := fleetrepo.Open(m.repo.WorkTree)
	if err != nil {
		return nil //nolint:nilerr // what is wrong there is in no commit
	}
	if m.onDisk, err = o.edit(ctx, repo); err != nil {
		return ctx.Err() // nor is that
	}
	if m.left, err = theirs(m, repo.Dir); err != nil || len(m.left) == 0 {
		return err
	}
	m.edit.Changes.Forget(m.left...)
	names := plain.Names(m.left, 5)
	if err := o.judgeRepo(ctx, m.repo, m.edit); err != nil {
		return diag.Errorf("first commit the files that the change needs ("+names+"), or leave --commit, --push and --pr out",
			"the change needs files that are not committed, with other content than it would write: %w", err)
	}
	m.edit.Notes = append(m.edit.Notes, "It needs files that are not committed yet: commit them, too ("+names+").")
	return nil
}

// theirs returns the files that an edit would write or delete, whose content in the working tree dir differs, and that
// the same edit of the working tree does not change. In committed files that stay, gitrepo keeps the user's lines
// apart.
func theirs(m *made, dir string) (paths []string, err error) {
	named, wanted := m.onDisk.Changes.Paths(), map[string][]byte{}
	for _, f := range m.edit.Changes.Files() {
		wanted[f.Path] = f.Content
	}
	for _, p := range m.edit.Changes.Paths() {
		if slices.Contains(named, p) {
			continue
		}
		content, writes := wanted[p]
		if _, err := os.Lstat(filepath.Join(m.repo.Dir, filepath.FromSlash(p))); err == nil && writes {
			continue // the file is committed
		}
		info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(p)))
		if err != nil {
			continue // neither side has the file
		}
		if writes && info.Mode().IsRegular() && info.Size() == int64(len(content)) {
			there, err := within.ReadFile(dir, p, info.Size())
			if err != nil {
				return nil, fmt.Errorf("compare the change with the working tree: %w", err)
			}
			if bytes.Equal(there, content) {
				continue
			}
		}
		paths = append(paths, p)
	}
	return paths, nil
}

// catchUp updates the working tree from the branch to which the change goes. The error matches gitrepo.ErrUnpushed if the push would
// include other commits, which the change does not show.
func (o Options) catchUp(ctx context.Context, m *made, dir string) error {
	repo, err := fleetrepo.Open(dir)
	if err != nil {
		return err
	}
	_, editErr := o.edit(ctx, repo)
	if m.to, err = newDestination(repo, m.git, o); err == nil {
		err = m.git.CatchUp(ctx, m.to.auth)
	}
	if err != nil {
		return cmp.Or(editErr, err)
	}
	return checkUnpushed(ctx, m.git)
}

// checkUnpushed refuses to push commits that do not belong to the change.
func checkUnpushed(ctx context.Context, git *gitrepo.Repo) error {
	subjects, err := git.Unpublished(ctx)
	if err != nil || len(subjects) == 0 {
		return err
	}
	return diag.Errorf("push them first (git push), or put them aside, then run the command again", "%w, and would be pushed, too: %s",
		gitrepo.ErrUnpushed, plain.Phrases(subjects, 5))
}

// try makes the edit from the unchanged working tree, only to get its error.
func (o Options) try(ctx context.Context, dir string) error {
	repo, err := fleetrepo.Open(dir)
	if err == nil {
		_, err = o.edit(ctx, repo)
	}
	return err
}

// needsUncommitted explains the error of an edit that fails with the committed files, but succeeds with the working
// tree's files.
func (o Options) needsUncommitted(ctx context.Context, git *gitrepo.Repo, root, dir string, why error) error {
	if root == dir {
		return why
	}
	if o.try(ctx, dir) != nil {
		return why
	}
	dirty, err := git.Dirty(ctx)
	if err != nil || len(dirty) == 0 {
		return why
	}
	const most = 5
	names := strings.Join(dirty[:min(most, len(dirty))], ", ")
	if len(dirty) > most {
		names += ", …"
	}
	return diag.Errorf("first commit the files that the change needs ("+names+"), or leave --commit, --push and --pr out",
		"%w: the change starts from committed files, and needs a file that is not committed", why)
}

// newDestination returns the remote and branch of the fleet repo. It makes no connection.
func newDestination(repo *fleetrepo.Repo, git *gitrepo.Repo, o Options) (*destination, error) {
	to := &destination{git: git}
	var err error
	if to.auth, err = AuthFor(repo, o.Git); err != nil {
		return nil, err
	}
	if err := to.git.CheckRemote(); err != nil {
		return nil, err
	}
	url, base, err := to.git.Remote()
	if err != nil {
		return nil, err
	}
	if url == "" {
		return nil, diag.Errorf("use --commit in place of --push or --pr: Flux follows the commits in this folder",
			"push: the fleet repo has no remote")
	}
	if !o.PullRequest {
		return to, nil
	}
	if to.forge, err = o.ForgeOf(repo, url, to.auth); err != nil {
		return nil, err
	}
	to.base = base
	return to, forge.Check(to.forge)
}

// ForgeOf returns what pkg/forge needs for the repository at url, the remote of the fleet repo. It makes no connection. The error says that
// url is no address of a repository.
func (o Options) ForgeOf(repo *fleetrepo.Repo, url string, auth gitrepo.Auth) (forge.Options, error) {
	remote, err := v1alpha1.Git{URL: url}.ParseURL()
	if err != nil {
		return forge.Options{}, err
	}
	return forge.Options{Type: cmp.Or(o.Forge, repo.Fleet.Spec.Git.Forge), Remote: remote, Token: o.Git.Token, CA: auth.CA}, nil
}

// push pushes the edit to the checked out branch.
func push(ctx context.Context, m *made, o Options, out *Result) error {
	synced, err := m.git.Sync(ctx, m.to.auth, o.intent(ctx, m), commitMessage(m), gitrepo.Author{})
	if err != nil {
		return ByPullRequest(err)
	}
	out.Commit, out.Pushed, out.Changed = synced.Commit, synced.Pushed, synced.Made || synced.Pushed
	if !synced.Made {
		return nil
	}
	return out.show(ctx, m, synced.Base, synced.Commit)
}

// intent makes the edit again, from the copy of the fleet repo at root.
func (o Options) intent(ctx context.Context, m *made) func(root string) ([]gitrepo.Change, error) {
	return func(root string) ([]gitrepo.Change, error) {
		now, err := fleetrepo.OpenCopy(root, m.repo.WorkTree)
		if err != nil {
			return nil, err
		}
		again, err := o.judged(ctx, now)
		if err != nil {
			return nil, err
		}
		again.Changes.Forget(m.left...)
		return gitFiles(again, root)
	}
}

// Credentials are what fleetctl itself uses to reach the fleet repo's remote. They are never written anywhere but into
// the cluster's Secret, and only the token is written there.
type Credentials struct {
	Username string
	// Token for https.
	Token string
	// SSHKeyFile for ssh; empty: the user's agent.
	SSHKeyFile string
	// CAFile is a file with the certificate authorities of an https remote. Its content goes into a new fleet.yaml.
	CAFile string
	// KnownHostsFile pins the host keys of an ssh remote. Its lines for that host go into a new fleet.yaml.
	KnownHostsFile string
}

// AuthFor returns the credentials for the remote of a fleet repo, from the caller and from fleet.yaml.
func AuthFor(repo *fleetrepo.Repo, given Credentials) (gitrepo.Auth, error) {
	git := repo.Fleet.Spec.Git
	auth := gitrepo.Auth{
		Username: cmp.Or(given.Username, git.Username), Token: given.Token, KeyFile: given.SSHKeyFile,
		KnownHosts: git.KnownHosts, UserKnownHosts: true,
	}
	if git.CAFile == "" {
		return auth, nil
	}
	file := git.CAFile
	if !filepath.IsAbs(file) {
		file = filepath.Join(repo.Dir, file)
	}
	var err error
	auth.CA, err = within.Named(file, maxCA)
	return auth, diag.Wrap("read the certificate authorities of the Git remote", err,
		"spec.git.caFile in fleet.yaml names a PEM file, relative to fleet.yaml")
}
