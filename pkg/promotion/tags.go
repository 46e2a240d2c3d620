package promotion

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
)

// choose returns the tag to move the channel to, and whether it is a new one: a tag that only this clone has is, because nobody has
// followed it yet.
func (p *run) choose(ctx context.Context) (gitrepo.Tag, bool, error) {
	if p.opts.To != "" {
		return p.named(p.opts.To)
	}
	if t := p.interrupted(); t != nil {
		return *t, true, nil
	}
	next := p.channel.TagPrefix() + firstVersion
	if len(p.tags) > 0 {
		// The commit that moves the channel is no reason for a new tag.
		latest := p.tags[0]
		changed, err := p.changedSince(ctx, latest.Commit)
		if err != nil || !changed {
			return latest, false, err
		}
		v, _ := p.version(latest.Name)
		v.Pre, v.Build = nil, nil
		if err := v.IncrementPatch(); err != nil {
			return latest, false, err
		}
		next = p.channel.TagPrefix() + v.String()
	}
	return p.fresh(next)
}

// interrupted returns the tag of an earlier run that was killed before it pushed the tag; nil if there is none at the newest commit. Other
// tags that only this clone has are a person's, and a channel does not go there by itself.
func (p *run) interrupted() *gitrepo.Tag {
	for i, t := range p.onlyHere {
		if t.Commit == p.head && p.isOwn(t) && p.isHighest(t.Name) {
			return &p.onlyHere[i]
		}
	}
	return nil
}

// isOwn tells whether promote has made a tag.
func (p *run) isOwn(t gitrepo.Tag) bool {
	subject, _, _ := strings.Cut(t.Message, "\n")
	return subject == p.subject(t.Name)
}

// isMarked tells whether a run of promote in this clone has made a tag, and has not pushed it. Without the mark, a tag of promote's that
// only this clone has may have been at the remote, and somebody has removed it there: others may have it too.
func (p *run) isMarked(t gitrepo.Tag) bool { return p.isOwn(t) && p.marked[t.Name] == t.Commit }

// makeTag makes the tag of a promotion, which is marked until it is pushed. A tag that is there already keeps its mark, or has none: it may
// be a person's, or have been at the remote. One that the user is to push has none: from then on it may have been at the remote, too.
func (p *run) makeTag(ctx context.Context, out *Result, body string) (err error) {
	marks := p.carries() && p.remote && !slices.ContainsFunc(p.onlyHere, func(t gitrepo.Tag) bool {
		return t.Name == out.Tag && t.Commit == out.Commit
	})
	if marks {
		if err := p.git.MarkTag(ctx, out.Tag, out.Commit); err != nil {
			return err
		}
	}
	p.made, err = p.git.Tag(ctx, out.Tag, out.Commit, p.subject(out.Tag)+"\n\n"+body)
	if marks && !p.made { // somebody has made it in this moment, or it failed
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTime)
		defer cancel()
		err = errors.Join(err, p.git.UnmarkTag(late, out.Tag))
	}
	return err
}

// dropMarked removes the tags that killed runs have made and have not pushed, and tells whether there was one.
func (p *run) dropMarked(ctx context.Context) (bool, error) {
	marked, err := p.git.MarkedTags()
	for name, commit := range marked {
		err = errors.Join(err, p.git.DropTag(ctx, name, commit), p.git.UnmarkTag(ctx, name))
	}
	return len(marked) > 0, err
}

// dropStale removes the tag of that name which an interrupted run has left at a commit that is no longer the newest one.
func (p *run) dropStale(ctx context.Context, name string) error {
	for _, t := range p.onlyHere {
		if t.Name == name && t.Commit != p.head && p.isMarked(t) {
			return p.git.DropTag(ctx, name, t.Commit)
		}
	}
	return nil
}

// withdraw removes the tag that this promotion has made, because its push failed. The next run then makes it anew, at the commit which is
// the newest by then. If the remote has taken the tag after all, the next run fetches it. A tag that was there before, of an interrupted
// run or of a person, stays.
func (p *run) withdraw(ctx context.Context, tag gitrepo.Tag, failed error) error {
	if !p.made {
		return failed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTime)
	defer cancel()
	if err := errors.Join(p.git.DropTag(ctx, tag.Name, tag.Commit), p.git.UnmarkTag(ctx, tag.Name)); err != nil {
		return errors.Join(failed, err)
	}
	if errors.Is(failed, gitrepo.ErrTagExists) {
		return diag.Wrap("", failed, "somebody else has just made it: run the command again")
	}
	return failed
}

// byHand returns the command by which the user pushes a tag that this promotion leaves in the clone; "" if there is nothing to push.
func (p *run) byHand(tag string) (string, error) {
	if p.carries() || !p.remote || p.opts.Change.DryRun || p.pushed[tag] {
		return "", nil
	}
	return p.git.PushCommand(tag)
}

// withdrawTime bounds what a promotion does after its end: hooks of the user's run with it.
const withdrawTime = 10 * time.Second

// subject is the first line of the tags that promote makes.
func (p *run) subject(tag string) string { return tag + " of fleet " + p.repo.Fleet.Metadata.Name }

// isHighest tells whether a tag is above all tags of the channel.
func (p *run) isHighest(tag string) bool {
	if len(p.tags) == 0 {
		return true
	}
	v, _ := p.version(tag)
	newest, _ := p.version(p.tags[0].Name)
	return v.GT(newest)
}

// fresh returns a new tag at the newest commit. The error says that this clone has the name for a tag of another commit, which is a
// person's, or has been at the remote, and the remote has not.
func (p *run) fresh(name string) (gitrepo.Tag, bool, error) {
	t := gitrepo.Tag{Name: name, Commit: p.head}
	i := slices.IndexFunc(p.onlyHere, func(t gitrepo.Tag) bool { return t.Name == name })
	if i < 0 || p.onlyHere[i].Commit == p.head || p.isMarked(p.onlyHere[i]) {
		return t, true, nil
	}
	return t, false, diag.Usage(
		"if nobody needs it: `"+diag.ShellCommand("git", "tag", "--delete", name)+"`, then run the command again; or name a higher one with --to",
		"the tag %s is in this clone only, and at commit %.8s: promote checks and tags the newest commit, %.8s",
		name, p.onlyHere[i].Commit, p.head)
}

// named returns the tag that the user asked for.
func (p *run) named(name string) (gitrepo.Tag, bool, error) {
	for _, t := range p.tags {
		if t.Name == name {
			return t, false, nil
		}
	}
	if _, ok := p.version(name); !ok {
		return gitrepo.Tag{}, false, diag.Usage(fmt.Sprintf("write it like %s%s", p.channel.TagPrefix(), firstVersion),
			"%q is no tag of channel %s: they are %s with a semantic version for the *", name, p.channel.Name, p.channel.Tag)
	}
	// A new tag has to be higher. A mistyped tag on the way back would otherwise bring the newest commit instead of an old one.
	if len(p.tags) > 0 && !p.isHighest(name) {
		there := "there is no tag " + name
		if slices.ContainsFunc(p.onlyHere, func(t gitrepo.Tag) bool { return t.Name == name }) {
			there = "the remote has no tag " + name + ", which is in this clone only"
		}
		return gitrepo.Tag{}, false, diag.Usage("name an existing one ("+p.newestTags()+"), or a new one above "+p.tags[0].Name, "%s", there)
	}
	return p.fresh(name)
}

// Tags returns the tags of a channel in this clone, the newest first, for completion: it asks no remote. With an empty name, the channel is
// the only one of tags. Errors: those of fleetrepo's Open and TagChannel, and of gitrepo's Open and Tags.
func Tags(ctx context.Context, dir, channel string) ([]string, error) {
	p := &run{}
	var err error
	if p.repo, err = fleetrepo.Open(dir); err != nil {
		return nil, err
	}
	if p.channel, err = p.repo.TagChannel(channel); err != nil {
		return nil, err
	}
	if p.git, err = gitrepo.Open(p.repo.Dir); err != nil {
		return nil, err
	}
	all, err := p.git.Tags(ctx)
	if err != nil {
		return nil, err
	}
	p.sort(all)
	var names []string
	for _, t := range all {
		if _, ok := p.version(t.Name); ok {
			names = append(names, t.Name)
		}
	}
	return names, nil
}

// sort sorts tags of the channel, the newest first.
func (p *run) sort(tags []gitrepo.Tag) {
	slices.SortFunc(tags, func(a, b gitrepo.Tag) int {
		x, _ := p.version(a.Name)
		y, _ := p.version(b.Name)
		return cmp.Or(y.Compare(x), cmp.Compare(a.Name, b.Name))
	})
}

// newestTags lists the last tags of the channel.
func (p *run) newestTags() string {
	const most = 5
	var names []string
	for _, t := range p.tags[:min(most, len(p.tags))] {
		names = append(names, t.Name)
	}
	if len(p.tags) > most {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

// orBehind returns an error about a channel that the files here do not have, or the one that the remote has another fleet.yaml, which may
// have the channel.
func (p *run) orBehind(ctx context.Context, missing error) error {
	if diag.Code(missing) != diag.ExitUsage || p.connect(ctx) != nil || !p.remote {
		return missing
	}
	here, err := p.git.Head()
	if err != nil {
		return missing
	}
	var texts [][]byte
	for _, commit := range []string{here, p.head} {
		files, err := p.git.Files(commit)
		if err != nil {
			return missing
		}
		text, err := fs.ReadFile(files, v1alpha1.FileName)
		if err != nil {
			return missing
		}
		texts = append(texts, text)
	}
	if bytes.Equal(texts[0], texts[1]) {
		return missing
	}
	main, _ := p.repo.Fleet.Channel(v1alpha1.MainChannel)
	return diag.Usage("`git pull`, then run the command again", "%w in the %s here, but %s of the remote has another one", missing,
		v1alpha1.FileName, main.Branch)
}
