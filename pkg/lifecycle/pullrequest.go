package lifecycle

import (
	"cmp"
	"context"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/forge"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
)

// proposal is an edit on its way to a review.
type proposal struct {
	repo    *fleetrepo.Repo
	edit    *fleetrepo.Edit
	auth    gitrepo.Auth
	intent  gitrepo.Intent
	message string
}

// propose pushes the edit to a branch of its own, named after what it does, and opens a pull request, or updates the one that is open: the
// same command twice is one pull request.
func propose(ctx context.Context, git *gitrepo.Repo, p proposal, o ChangeOptions, out *ChangeResult) error {
	url, base, err := git.Remote()
	if err != nil {
		return err
	}
	remote, err := v1alpha1.Git{URL: url}.ParseURL()
	if err != nil {
		return err
	}
	at := forge.Options{Type: cmp.Or(o.Forge, p.repo.Fleet.Spec.Git.Forge), Remote: remote, Token: o.Git.Token, CA: p.auth.CA}
	// Before anything is pushed: a branch that nobody hears of helps nobody.
	if err := forge.Check(at); err != nil {
		return err
	}
	out.Branch = branchFor(out.Summary)
	synced, err := git.Propose(ctx, p.auth, out.Branch, p.intent, p.message, gitrepo.Author{})
	if err != nil {
		return err
	}
	head, err := git.Head()
	if err != nil {
		return err
	}
	out.Commit, out.Pushed = synced.Commit, synced.Pushed
	if out.Changed = synced.Commit != head; !out.Changed {
		out.Branch, out.Commit = "", ""
		return nil
	}
	out.PullRequest, err = forge.Open(ctx, at, forge.Request{Branch: out.Branch, Base: base, Title: out.Summary, Body: description(p.edit)})
	return err
}

// branchFor is the branch of a change that does what summary says.
func branchFor(summary string) string {
	const most = 60
	var b strings.Builder
	for _, r := range strings.ToLower(summary) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := b.String()
	name = strings.ReplaceAll(name[:min(len(name), most)], "..", ".")
	return "fleetctl/" + strings.Trim(name, "-.")
}

// description is the text of the pull request: what the edit says to whoever reviews it.
func description(e *fleetrepo.Edit) string {
	parts := []string{}
	if e.Body != "" {
		parts = append(parts, strings.TrimSpace(e.Body))
	}
	parts = append(parts, e.Notes...)
	return strings.Join(append(parts, "Made by fleetctl."), "\n\n")
}
