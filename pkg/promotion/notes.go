package promotion

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/forge"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// notes returns the release notes of a tag at this commit: the commits since the tag before, grouped if the fleet has a convention for
// their subjects.
func (p *run) notes(ctx context.Context, tag, at string) (string, error) {
	before := gitrepo.Tag{}
	v, _ := p.version(tag)
	for _, t := range p.tags {
		if older, _ := p.version(t.Name); older.LT(v) {
			before = t
			break
		}
	}
	all, err := p.git.Log(ctx, at, before.Commit)
	if err != nil {
		return "", err
	}
	cut, err := p.cutOff(ctx, at, before.Commit)
	if err != nil {
		return "", err
	}
	commits := slices.DeleteFunc(all, func(c gitrepo.Commit) bool { return c.Merge || !slices.ContainsFunc(c.Files, layout.InChannels) })
	var b strings.Builder
	if before.Name != "" {
		fmt.Fprintf(&b, "Changes since %s:\n\n", before.Name)
	}
	if p.repo.Fleet.Spec.Releases.Commits == v1alpha1.ConventionalCommits {
		b.WriteString(grouped(commits))
	} else {
		for _, c := range commits {
			b.WriteString(line(c.Subject, c))
		}
	}
	if cut {
		b.WriteString("\nThe clone of this promotion lacked a part of the history, so commits are missing here.\n")
	}
	return b.String(), nil
}

// cutOff tells whether this clone may lack some of the commits of tip that base lacks: it is shallow, and ends before base.
func (p *run) cutOff(ctx context.Context, tip, base string) (bool, error) {
	shallow, err := p.git.Shallow()
	if err != nil || !shallow || base == "" {
		return shallow, err
	}
	whole, err := p.git.Includes(ctx, p.auth, tip, base)
	return !whole, err
}

// line is the line of a commit in release notes.
func line(subject string, c gitrepo.Commit) string {
	return fmt.Sprintf("- %s (%.8s, %s)\n", plain.Markdown(subject), c.Hash, plain.Markdown(c.Author))
}

// grouped returns the lines of commits under the headings of Conventional Commits. A commit without a type is among the other changes.
func grouped(commits []gitrepo.Commit) string {
	const (
		breaks = iota
		features
		fixes
		others
		groups
	)
	var lines [groups][]string
	for _, c := range commits {
		said, ok := v1alpha1.ParseConventionalCommit(c.Subject)
		group, subject := others, c.Subject
		switch {
		case ok && said.Type == "feat":
			group = features
		case ok && said.Type == "fix":
			group = fixes
		}
		if said.Breaking || c.Breaking {
			group = breaks
		}
		if ok && group != others { // the heading says the type
			subject = said.Description
			if said.Scope != "" {
				subject = said.Scope + ": " + subject
			}
		}
		lines[group] = append(lines[group], line(subject, c))
	}
	var sections []string
	for group, heading := range [groups]string{"Breaking changes", "Features", "Fixes", "Other changes"} {
		if len(lines[group]) > 0 {
			sections = append(sections, "### "+heading+"\n\n"+strings.Join(lines[group], ""))
		}
	}
	return strings.Join(sections, "\n")
}

// publishes tells whether the fleet asks for releases at the forge, and there is one.
func (p *run) publishes() bool { return p.repo.Fleet.Spec.Releases.Forge && p.remote && p.carries() }

// checkForge checks what a release at the forge needs, before there is a tag.
func (p *run) checkForge() error {
	if !p.publishes() {
		return nil
	}
	o, err := p.forgeOptions()
	if err != nil {
		return err
	}
	return forge.CheckRelease(o)
}

func (p *run) forgeOptions() (forge.Options, error) {
	url, _, err := p.git.Remote()
	if err != nil {
		return forge.Options{}, err
	}
	return p.opts.Change.ForgeOf(p.repo, url, p.auth)
}

// publish makes the release of a new tag at the forge. The newest tag gets its release, too, if an earlier run did not come so far. Older
// tags, to which a promotion goes back, get none.
func (p *run) publish(ctx context.Context, out *Result, tag gitrepo.Tag) error {
	if !p.publishes() || !out.Tagged && tag.Name != p.tags[0].Name {
		return nil
	}
	o, err := p.forgeOptions()
	if err != nil {
		return err
	}
	notes := out.ReleaseNotes
	if !out.Tagged {
		if notes, err = p.notes(ctx, tag.Name, tag.Commit); err != nil {
			return err
		}
	}
	out.Release, err = forge.EnsureRelease(ctx, o, tag.Name, notes)
	return err
}
