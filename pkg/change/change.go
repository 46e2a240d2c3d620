// Package change carries an edit of the fleet repo to Git. It judges the effect of the edit on the clusters, and shows the edit. Then it
// writes, commits and pushes it, or opens a pull request. It needs no cluster.
package change

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/forge"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// Options say what to do with an edit of the fleet repo.
type Options struct {
	// Dir is in the fleet repo.
	Dir string
	// Edit makes the change in the repo as it is. It is called again if others have pushed meanwhile.
	Edit func(r *fleetrepo.Repo) (*fleetrepo.Edit, error)
	// DryRun changes nothing, Commit commits the files of the edit and no others, Push pushes that commit as well.
	DryRun, Commit, Push bool
	// NoVerify leaves out the hooks that may refuse the commit or the push.
	NoVerify bool
	// PullRequest pushes the commit to a separate branch and opens a pull request for it, or updates the open pull request.
	PullRequest bool
	// Forge is the kind of forge of the remote; "" means spec.git.forge, or the kind that the host's name tells.
	Forge v1alpha1.ForgeType
	// Git has the credentials with which Push reaches the remote.
	Git Credentials
	// CacheDir keeps what is rendered to check the change; "" keeps nothing.
	CacheDir string
	// Look, if set, looks at the fleet repo as it is and at a temporary copy that has the edit, before anything changes. Its error ends Make.
	Look func(before, after *fleetrepo.Repo) error
	// Confirm, if set, is called before anything changes. Its error ends Make.
	Confirm func(e *fleetrepo.Edit) error
}

// Result is what an edit did, or with DryRun would do.
type Result struct {
	FormatVersion string            `json:"formatVersion"`
	Summary       string            `json:"summary"`
	Changed       bool              `json:"changed"`
	DryRun        bool              `json:"dryRun"`
	Files         []manifest.Change `json:"files"`
	Diff          string            `json:"diff"`
	Commit        string            `json:"commit,omitempty"`
	Pushed        bool              `json:"pushed"`
	// Branch and PullRequest are where the change waits for a review.
	Branch      string             `json:"branch,omitempty"`
	PullRequest *forge.PullRequest `json:"pullRequest,omitempty"`
	Notes       []string           `json:"notes"`
	// ManagementClusters are those that apply the changed files; none for a change outside of their folders.
	ManagementClusters []string `json:"managementClusters,omitempty"`
	// AsWanted says which part of the fleet repo is already as wanted, if nothing changed.
	AsWanted string `json:"asWanted,omitempty"`
	// LeftAlone names what the change did not touch, with the reason.
	LeftAlone []string `json:"leftAlone,omitempty"`
}

// carries tells whether the change goes into a commit.
func (o Options) carries() bool { return o.Commit || o.Push || o.PullRequest }

// Make makes an edit of the fleet repo. It writes all files or none, and commits and pushes them if the options ask for that. A change
// for a commit starts from the committed files, and its difference is shown against them. Other edits in the working tree stay there. If
// nothing has to change, the result says so. If others change the same files, or commit, before Make has written or committed, it makes the
// edit again from what they have made. Errors: those of the edit, of writing, and of gitrepo's Commit and Sync.
func Make(ctx context.Context, o Options) (*Result, error) {
	branch := ""
	for try := 1; ; try++ {
		began := time.Now()
		m, err := o.make(ctx)
		if err != nil && ctx.Err() == nil && try < mostTries && writtenSince(o.Dir, began) {
			continue // it may have seen the files of another command when only half of them were written
		}
		if err != nil {
			return nil, err
		}
		if branch == "" {
			branch = m.branch
		}
		if err := gitrepo.SameBranch(branch, m.branch); err != nil {
			return nil, errors.Join(err, m.done())
		}
		out, err := o.finish(ctx, m)
		if err = errors.Join(err, m.done()); try == mostTries || !errors.Is(err, manifest.ErrChanged) && !errors.Is(err, gitrepo.ErrMoved) {
			return out, err
		}
	}
}

// mostTries bounds how often Make begins anew. Each time, another command has made a change.
const mostTries = 20

// writtenSince tells whether a file or folder of the fleet repo was written after a point in time, as far as the file system tells.
func writtenSince(dir string, then time.Time) bool {
	const (
		most     = 200_000               // files and folders
		accuracy = 20 * time.Millisecond // of a file's time in Linux, which is that of the last tick
	)
	dir, err := fleetrepo.Find(dir)
	if err != nil {
		return false
	}
	written, seen := errors.New("written"), 0
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it is gone, or cannot be read: that is not written since
		}
		if entry.IsDir() && entry.Name() == ".git" {
			return fs.SkipDir
		}
		if seen++; seen > most {
			return fs.SkipAll
		}
		if info, err := entry.Info(); err == nil && info.ModTime().After(then.Add(-accuracy)) {
			return written
		}
		return nil
	})
	return errors.Is(err, written)
}

// finish shows, writes, commits and pushes an edit, as the options say.
func (o Options) finish(ctx context.Context, m *made) (*Result, error) {
	repo, edit := m.repo, m.edit
	out := &Result{
		FormatVersion: "1", Summary: edit.Summary, DryRun: o.DryRun, Notes: append([]string{}, edit.Notes...),
		LeftAlone: edit.LeftAlone, AsWanted: edit.AsWanted,
	}
	var err error
	if out.Files, err = edit.Changes.Plan(repo.Dir); err != nil {
		return nil, err
	}
	if name := repo.ReadOtherwise(out.Files); name != "" {
		return nil, diag.Errorf("run the command again", "%w: %s", manifest.ErrChanged, name)
	}
	if !edit.Private {
		out.Diff = manifest.Diff(out.Files)
	}
	out.Changed, out.ManagementClusters = len(out.Files) > 0, repo.ManagementClustersOf(out.Files)
	if err := o.look(repo, edit); err != nil {
		return out, err
	}
	if o.DryRun {
		return out, nil
	}
	for _, e := range []*fleetrepo.Edit{edit, m.onDisk} {
		if e == nil {
			continue
		}
		if err := checkOrder(ctx, repo.WorkTree, e); err != nil {
			return nil, err
		}
	}
	if o.Confirm != nil && out.Changed {
		if err := o.Confirm(edit); err != nil {
			return nil, err
		}
	}
	switch {
	case o.PullRequest:
		return out, propose(ctx, m, o, out)
	case o.Push:
		return out, push(ctx, m, o, out)
	case o.Commit:
		return out, commitChange(ctx, m, out)
	}
	_, err = edit.Changes.ApplyPlanned(ctx, repo.Dir, out.Files)
	return out, err
}

// commitChange commits the files of an edit.
func commitChange(ctx context.Context, m *made, out *Result) error {
	changes, err := gitFiles(m.edit, m.repo.Dir)
	if err != nil {
		return err
	}
	var made bool
	out.Commit, made, err = m.git.CommitOnto(ctx, m.base, changes, commitMessage(m), gitrepo.Author{})
	if err != nil {
		return err
	}
	out.Changed = made
	return out.show(ctx, m, m.base, out.Commit)
}

// show puts the changes of a commit into the result. Hooks and Git's own conversions may have changed the files.
func (r *Result) show(ctx context.Context, m *made, base, commit string) error {
	if base == commit {
		return nil
	}
	files, err := m.git.Between(ctx, base, commit)
	if err != nil {
		return err
	}
	r.Files, r.Diff = files, ""
	if !m.edit.Private {
		r.Diff = manifest.Diff(r.Files)
	}
	return nil
}

func commitMessage(m *made) string {
	message := m.edit.Summary + "\n"
	if m.edit.Body != "" {
		message += "\n" + m.edit.Body
	}
	return m.repo.Fleet.CommitMessage(message)
}

// gitFiles returns the files of an edit in the form that gitrepo commits.
func gitFiles(edit *fleetrepo.Edit, root string) ([]gitrepo.Change, error) {
	planned, err := edit.Changes.Plan(root)
	if err != nil {
		return nil, err
	}
	var changes []gitrepo.Change
	for _, f := range edit.Changes.Files() {
		changes = append(changes, gitrepo.Change{Path: f.Path, Content: f.Content, Replace: slices.Contains(edit.Replaces, f.Path)})
	}
	for _, c := range planned {
		if c.Action == manifest.ActionDelete {
			changes = append(changes, gitrepo.Change{Path: c.Path, Delete: true})
		}
	}
	return changes, nil
}

// checkOrder runs the checks of an edit that are about the step before it.
func checkOrder(ctx context.Context, dir string, edit *fleetrepo.Edit) error {
	for _, check := range edit.Checks {
		if step, ok := check.(fleetrepo.FollowsStep); ok {
			if err := checkFollows(ctx, dir, step); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkFollows returns an error for a step that cannot have reached the cluster. The step's file, in the fleet repo at dir, has changes
// that are not committed, that are not pushed, or that the tag of the cluster lacks. Without a Git repository, checkFollows checks nothing.
func checkFollows(ctx context.Context, dir string, step fleetrepo.FollowsStep) error {
	git, err := gitrepo.Open(dir)
	if errors.Is(err, gitrepo.ErrNotARepository) {
		return nil
	}
	if err != nil {
		return err
	}
	dirty, err := git.Dirty(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(dirty, step.File) {
		// The file does not tell whether the change is the step before this step or a later change: both are held back.
		return diag.Errorf("commit and push it, and wait until Flux has applied it; `git diff` shows it",
			"%s has a change that is not committed: Flux has not seen it, and this step builds on what Flux has applied", step.File)
	}
	if step.Remote {
		pushed, err := git.RemoteHead()
		if err == nil && pushed != "" {
			err = checkReached(git, step.File, pushed,
				diag.Errorf("git push, and wait until Flux has applied it",
					"the step before this one is not pushed: %s at the remote lacks it", step.File))
		}
		if err != nil {
			return err
		}
	}
	if step.Tag == "" {
		return nil
	}
	commit, err := git.Resolve(step.Tag)
	if err != nil {
		return diag.Wrap("find out what is promoted", err, "git fetch --tags")
	}
	return checkReached(git, step.File, commit,
		diag.Errorf("run `fleetctl promote`, and wait until Flux has applied it",
			"the step before this one is not promoted: in tag %s, %s lacks it", step.Tag, step.File))
}

// checkReached returns the error otherwise if the file in a commit differs from the file in the last commit of the checked out branch. The
// file on disk may have other ends of lines than Git keeps.
func checkReached(git *gitrepo.Repo, file, commit string, otherwise error) error {
	head, err := git.Head()
	if err != nil {
		return err
	}
	var content [2][]byte
	for i, at := range []string{commit, head} {
		files, err := git.Files(at)
		if err != nil {
			return err
		}
		content[i], err = fs.ReadFile(files, file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if !bytes.Equal(content[0], content[1]) {
		return otherwise
	}
	return nil
}
