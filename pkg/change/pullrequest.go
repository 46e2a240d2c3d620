package change

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/forge"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// propose pushes the edit to a separate branch, named after the edit, and opens a pull request or updates the open one. The same command
// twice makes one pull request.
func propose(ctx context.Context, m *made, o Options, out *Result) error {
	to, edit := m.to, m.edit
	want := forge.Request{
		Branch: branchFor(edit.Summary), Base: to.base, Title: title(m.repo.Fleet.CommitMessage(edit.Summary)), Body: description(edit),
	}
	// Check this before the push, because a pushed branch without a pull request would be lost.
	if _, err := forge.Find(ctx, to.forge, want); err != nil {
		return err
	}
	synced, err := to.git.Propose(ctx, to.auth, want.Branch, o.intent(ctx, m), commitMessage(m), gitrepo.Author{})
	if err != nil {
		return err
	}
	head, err := to.git.Head()
	if err != nil {
		return err
	}
	out.Pushed = synced.Pushed
	if out.Changed = synced.Commit != head; !out.Changed {
		return nil
	}
	out.Branch, out.Commit = want.Branch, synced.Commit
	if err := out.show(ctx, m, synced.Base, synced.Commit); err != nil {
		return err
	}
	if out.PullRequest, err = forge.Open(ctx, to.forge, want); err != nil {
		return diag.Wrap("branch "+want.Branch+" is pushed", err,
			cmp.Or(diag.Hint(err), "only its pull request is missing: run the command again"))
	}
	return nil
}

// title is the title of a pull request, made from the summary of its change: one line that every forge accepts. The
// commit message has the whole summary.
func title(summary string) string {
	const most = 200
	return plain.Clip(plain.Line(summary), most)
}

// branchFor is the branch of a change with this summary. Two changes with different summaries have different branches,
// however long their common beginning is. On one branch, the second change would replace the first.
func branchFor(summary string) string {
	const most = 60
	var b strings.Builder
	for _, r := range strings.ToLower(summary) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() == 0 || strings.HasSuffix(b.String(), "-"):
		case r != '.':
			b.WriteByte('-')
		case !strings.HasSuffix(b.String(), "."): // git accepts no two dots in a row
			b.WriteByte('.')
		}
	}
	name := strings.Trim(b.String(), "-.")
	if len(name) > most || strings.HasSuffix(name, ".lock") { // and no name that ends like a lock file
		mark := fmt.Sprintf("-%x", sha256.Sum256([]byte(summary)))[:9]
		name = strings.TrimRight(name[:min(len(name), most-len(mark))], "-.") + mark
	}
	return "fleetctl/" + name
}

// description is the text of the pull request.
func description(e *fleetrepo.Edit) string {
	parts := []string{}
	if e.Body != "" {
		parts = append(parts, strings.TrimSpace(e.Body))
	}
	for _, note := range e.Notes {
		parts = append(parts, noted(note))
	}
	return short(strings.Join(append(parts, "Made by fleetctl."), "\n\n"))
}

// noted is a note in a description. Most notes quote names from the fleet repo, or text of its charts. As Markdown, such text could be a
// picture, a mention or, at the beginning of a line, a command that the forge would run with our rights.
func noted(note string) string {
	isCommand := strings.HasPrefix(strings.TrimSpace(note), "/")
	switch bare := strings.ReplaceAll(note, "`", ""); {
	case plain.Markdown(bare) != bare:
		return plain.Markdown(note)
	case isCommand:
		return "`" + bare + "`"
	}
	return note // plain words, and commands in backquotes
}

// short cuts a description to the length that every forge accepts.
func short(text string) string {
	const most = 60_000
	if len(text) <= most {
		return text
	}
	text = strings.ToValidUTF8(text[:most], "")
	return text[:max(strings.LastIndexByte(text, '\n'), 0)] + "\n\nThe text is too long for the rest: `fleetctl validate` shows everything."
}
