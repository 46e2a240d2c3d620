// Package promotion moves a channel to a tag once the environments before it are healthy at the commit, and says which
// commits wait for a promotion.
package promotion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/forge"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// firstVersion is the version in the first tag of a channel.
const firstVersion = "0.1.0"

// Options say what to promote.
type Options struct {
	// Change makes the commit with the changed line. Its fields Dir, DryRun, Commit, Push, PullRequest and Git count.
	// Without Commit, Push and PullRequest the change is pushed, or committed if there is no remote.
	Change change.Options
	// Channel to move; "" means the only channel of tags.
	Channel string
	// To is the tag to move the channel to: an existing tag, or a new one. "" means the next version.
	To string
	// Cluster is the only management cluster on which to move the channel; "" means all.
	Cluster string
	// SkipHealth promotes without a look at the environments that already have the commit.
	SkipHealth bool
}

// Result is what a promotion did, or with DryRun would do.
type Result struct {
	FormatVersion string `json:"formatVersion"`
	Channel       string `json:"channel"`
	Tag           string `json:"tag"`
	// Commit of the tag.
	Commit string `json:"commit"`
	// Tagged says that the tag is new.
	Tagged bool `json:"tagged"`
	// TagPushed says that the remote did not have the tag before.
	TagPushed bool `json:"tagPushed,omitempty"`
	// PushWith is the command that pushes the tag with the change, if the promotion leaves that to the user and the remote lacks the tag.
	PushWith string `json:"pushWith,omitempty"`
	// ReleaseNotes list the commits since the tag before. They are empty for an existing tag.
	ReleaseNotes string `json:"releaseNotes,omitempty"`
	// Release is the release of the tag at the forge; nil if the fleet does not ask for one.
	Release *forge.Release `json:"release,omitempty"`
	// Checked are the environments that were healthy at the commit.
	Checked []string `json:"checked"`
	// Environments that follow the channel.
	Environments []string `json:"environments"`
	// Paused are the environments among them that a pause in Git keeps at their revision.
	Paused []string       `json:"paused,omitempty"`
	Change *change.Result `json:"change"`
	// Live is what the environments run on the management clusters right afterwards. It is empty for a dry run and a
	// pull request.
	Live []Live `json:"live"`
	// NotAsked are the workload clusters whose own Flux could not be asked what it has applied.
	NotAsked []NotAsked `json:"notAsked,omitempty"`
}

// run is one promotion.
type run struct {
	store   state.Store
	opts    Options
	repo    *fleetrepo.Repo
	git     *gitrepo.Repo
	auth    gitrepo.Auth
	remote  bool
	channel v1alpha1.Channel
	head    string
	// tags of the channel, the newest first: those of the remote, if there is one, and those that a channel is at there.
	tags []gitrepo.Tag
	// onlyHere are the other tags of this clone, the newest first. Nobody else has seen them, so they are no versions yet.
	onlyHere []gitrepo.Tag
	// marked are the commits of tags that promote has made in this clone and has not pushed, by name.
	marked map[string]string
	// made says that this run has made the tag.
	made bool
	// pushed has the names of the remote's tags.
	pushed map[string]bool
	// notAsked has, by name, why the Flux of a workload cluster could not be asked.
	notAsked map[string]string
}

// Promote moves a channel to a tag. The tag is a new one on the newest commit of the branch, if the environments that
// follow the branch are healthy at that commit, or an existing one, which is also the way back. Promote first makes and
// pushes the tag, then makes its release at the forge where the fleet asks for that, and then the change. If it is killed
// in between, the next run continues. Tags are never moved.
// Errors: those of fleetrepo's Promote, of the health check (not ready), of gitrepo's Fetch, Tag and PushTag, of
// forge.EnsureRelease, and of Change.
func Promote(ctx context.Context, store state.Store, o Options) (*Result, error) {
	p, err := newRun(ctx, store, o)
	if err != nil {
		return nil, err
	}
	if err := p.checkPushed(ctx); err != nil {
		return nil, err
	}
	if err := p.look(ctx); err != nil {
		return nil, err
	}
	out := &Result{FormatVersion: "1", Channel: p.channel.Name, Checked: []string{}, Environments: p.repo.Fleet.EnvironmentsOf(p.channel.Name)}
	tag, fresh, err := p.choose(ctx)
	if err != nil {
		return nil, err
	}
	out.Tag, out.Commit, out.Tagged = tag.Name, tag.Commit, fresh
	body := ""
	files, err := p.git.Files(tag.Commit)
	if err != nil {
		return nil, err
	}
	move := p.opts.Change
	move.Edit = func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
		e, err := r.Promote(p.channel.Name, tag.Name, o.Cluster, files)
		if err == nil {
			e.Body = body
			out.Paused, _ = r.Paused(out.Environments)
		}
		return e, err
	}
	if !fresh {
		if err := p.repo.CheckPromotable(p.channel.Name, o.Cluster); err != nil {
			return nil, err
		}
	} else if body, err = p.release(ctx, out, move); err != nil {
		return nil, err
	}
	if p.carries() && p.remote && !o.Change.DryRun {
		if out.TagPushed, err = p.git.PushTag(ctx, p.auth, tag.Name); err != nil {
			return nil, p.withdraw(ctx, tag, err)
		}
		_ = p.git.UnmarkTag(ctx, tag.Name) // else the next run does it
		if err := p.publish(ctx, out, tag); err != nil {
			return nil, p.halfway(tag.Name, err)
		}
	}
	if out.Change, err = change.Make(ctx, move); err != nil {
		return out, p.halfway(tag.Name, err)
	}
	if out.PushWith, err = p.byHand(tag.Name); err != nil {
		return out, err
	}
	if out.Live = []Live{}; !p.opts.Change.DryRun && !p.opts.Change.PullRequest {
		out.Live = p.live(ctx, out.Environments, out.Commit)
	}
	out.NotAsked = p.clustersNotAsked()
	return out, nil
}

// halfway adds to an error what an interrupted promotion leaves: the tag is at the remote, and nothing follows it yet.
func (p *run) halfway(tag string, err error) error {
	if !p.carries() || !p.remote || p.opts.Change.DryRun {
		return err
	}
	return diag.Wrap("the tag "+tag+" is pushed, but channel "+p.channel.Name+" is not moved", err,
		cmp.Or(diag.Hint(err), "run the same command again"))
}

// carries tells whether the change goes to the remote, directly or as a pull request.
func (p *run) carries() bool { return p.opts.Change.Push || p.opts.Change.PullRequest }

// newRun opens the fleet repo and finds the newest commit of the branch, at the remote if there is one. If no channel
// is named, it takes the only channel of tags.
func newRun(ctx context.Context, store state.Store, o Options) (*run, error) {
	p := &run{store: store, opts: o, notAsked: map[string]string{}}
	var err error
	if p.repo, err = fleetrepo.Open(o.Change.Dir); err != nil {
		return nil, err
	}
	if p.channel, err = p.repo.TagChannel(o.Channel); err != nil {
		return nil, p.orBehind(ctx, err)
	}
	if err := p.connect(ctx); err != nil {
		return nil, err
	}
	ways := &p.opts.Change
	if !ways.Commit && !ways.Push && !ways.PullRequest && !ways.DryRun {
		ways.Push, ways.Commit = p.remote, !p.remote
	}
	if p.carries() && p.remote { // the first promotion has no tag here
		if err := p.git.CheckRemote(); err != nil {
			return nil, err
		}
		if err := p.checkForge(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// connect finds the newest commit of the branch.
func (p *run) connect(ctx context.Context) error {
	if err := p.openGit(); err != nil {
		return err
	}
	if err := p.fetch(ctx); err != nil {
		return err
	}
	return p.checkBegun()
}

// openGit opens the Git repository of the fleet repo. head is the newest commit of this clone then.
func (p *run) openGit() error {
	var err error
	if p.git, err = gitrepo.OpenFor("promote", p.repo.Dir, "the fleet repo has to be the top of a Git repository"); err != nil {
		return err
	}
	p.git.NoVerify = p.opts.Change.NoVerify
	main, _ := p.repo.Fleet.Channel(v1alpha1.MainChannel)
	branch, err := p.git.Branch()
	if err != nil {
		return err
	}
	if branch != main.Branch {
		return diag.Errorf(diag.ShellCommand("git", "switch", main.Branch),
			"the branch %s is checked out, but promote tags commits of %s", branch, main.Branch)
	}
	url, _, err := p.git.Remote()
	if err != nil {
		return err
	}
	if p.head, err = p.git.Head(); err != nil {
		return err
	}
	p.remote = url != ""
	return nil
}

// fetch reads the newest commit and the tags of the remote, if there is one.
func (p *run) fetch(ctx context.Context) error {
	if !p.remote {
		return nil
	}
	var err error
	if p.auth, err = change.AuthFor(p.repo, p.opts.Change.Git); err != nil {
		return err
	}
	head, pushed, err := p.git.FetchTags(ctx, p.auth)
	if errors.Is(err, gitrepo.ErrTagExists) { // perhaps a killed run's, whose version somebody else has made since
		if dropped, dropErr := p.dropMarked(ctx); dropErr != nil {
			return errors.Join(err, dropErr)
		} else if dropped {
			head, pushed, err = p.git.FetchTags(ctx, p.auth)
		}
	}
	if err == nil {
		p.head, p.pushed = head, pushed
	}
	return err
}

// checkBegun returns an error if the branch has no commit yet.
func (p *run) checkBegun() error {
	if p.head != "" {
		return nil
	}
	main, _ := p.repo.Fleet.Channel(v1alpha1.MainChannel)
	return diag.Errorf("commit and push the fleet first", "the branch %s has no commit", main.Branch)
}

// checkPushed returns an error if there are commits that others have not seen.
func (p *run) checkPushed(ctx context.Context) error {
	if !p.remote {
		return nil
	}
	ahead, err := p.git.CommitsAhead(ctx)
	if err == nil && ahead > 0 {
		main, _ := p.repo.Fleet.Channel(v1alpha1.MainChannel)
		err = diag.Errorf("push them, or put them aside", "%s of %s %s not pushed: promote tags only pushed commits",
			plain.Count(ahead, "commit"), main.Branch, plain.Are(ahead))
	}
	return err
}

// look finds the tags of the channel, the newest first.
func (p *run) look(ctx context.Context) error {
	all, err := p.git.Tags(ctx)
	if err != nil {
		return err
	}
	at, err := p.positions(p.channel.Name)
	if err != nil {
		return err
	}
	if p.marked, err = p.git.MarkedTags(); err != nil {
		return err
	}
	for name := range p.marked {
		if p.pushed[name] { // the run was killed right after the push; a dry run, which fetches too, learns it as well
			_ = p.git.UnmarkTag(ctx, name) // else the next run does it
			delete(p.marked, name)
		}
	}
	for _, t := range all {
		_, ok := p.version(t.Name)
		inUse := slices.ContainsFunc(at, func(position fleetrepo.Position) bool { return position.Tag == t.Name })
		switch {
		case !ok:
		case p.remote && !p.pushed[t.Name] && !inUse:
			p.onlyHere = append(p.onlyHere, t)
		default:
			p.tags = append(p.tags, t)
		}
	}
	p.sort(p.tags)
	p.sort(p.onlyHere)
	return nil
}

// positions are the tags of a channel in Git: at the remote if there is one, because others may have moved the channel since the last pull.
func (p *run) positions(channel string) ([]fleetrepo.Position, error) {
	if !p.remote {
		return p.repo.Positions(channel)
	}
	files, err := p.git.Files(p.head)
	if err != nil {
		return nil, err
	}
	return p.repo.PositionsIn(files, channel)
}

// version is the part of a tag that stands for the channel's *.
func (p *run) version(tag string) (semver.Version, bool) {
	text, ok := strings.CutPrefix(tag, p.channel.TagPrefix())
	if !ok {
		return semver.Version{}, false
	}
	v, err := semver.Parse(text)
	return v, err == nil
}

// changedSince tells whether the newest commit has changes for environments that another commit lacks.
func (p *run) changedSince(ctx context.Context, commit string) (bool, error) {
	files, err := p.git.Differ(ctx, commit, p.head)
	return slices.ContainsFunc(files, layout.InChannels), err
}

// release judges the newest commit and the move to it, writes the release notes, and makes the tag. It returns the
// message of the commit that moves the channel.
func (p *run) release(ctx context.Context, out *Result, move change.Options) (string, error) {
	said := ""
	if p.opts.SkipHealth {
		said = "The health of the environments before it was not checked (--skip-health).\n"
	} else {
		checked, err := p.checkHealth(ctx)
		if err != nil {
			return "", err
		}
		out.Checked = checked
		if len(checked) > 0 {
			said = fmt.Sprintf("Healthy at this commit: %s.\n", strings.Join(checked, ", "))
		}
	}
	// Check this before the tag is made: a tag that no environment follows looks like a release.
	if err := p.repo.CheckPromotable(p.channel.Name, p.opts.Cluster); err != nil {
		return "", err
	}
	notes, err := p.notes(ctx, out.Tag, p.head)
	if err != nil {
		return "", err
	}
	out.ReleaseNotes = notes
	body := strings.TrimPrefix(notes+"\n"+said, "\n")
	if p.opts.Change.DryRun {
		return body, nil
	}
	// The same holds for a move that cannot be made.
	move.DryRun = true
	if _, err := change.Make(ctx, move); err != nil {
		return "", err
	}
	if err := p.dropStale(ctx, out.Tag); err != nil {
		return "", err
	}
	return body, p.makeTag(ctx, out, body)
}

// errNotHealthy is the cause if an environment is not ready for a promotion of its commit.
var errNotHealthy = errors.New("not healthy at the commit to promote")
