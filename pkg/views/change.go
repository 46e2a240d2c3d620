package views

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/promotion"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// Change is the output of every command that edits the fleet repo.
func Change(r *change.Result) View {
	return view{r, func(p *Page) error { return changeView(p.Out, p.Streams, r, p.Verbose) }}
}

// Promotion is what `fleetctl promote` has done.
func Promotion(r *promotion.Result) View {
	return view{r, func(p *Page) error { return promoteView(p.Out, p.Streams, r, p.Verbose) }}
}

// Promotions is what `fleetctl promote --status` shows.
func Promotions(r *promotion.Status) View {
	names := make([]string, 0, len(r.Environments))
	for _, e := range r.Environments {
		names = append(names, e.Name)
	}
	return named(r, names, func(p *Page) error { return promotionsView(p, r) })
}

// Paused is the output of `pause --now` and `resume --now`. commit is the command that makes the same change in Git; "" if no commit can
// make it. resume is the command that ends such a pause.
func Paused(paused bool, objects []management.Switched, commit, resume string) View {
	r := &pauseResult{FormatVersion: "1", Suspended: paused, Objects: objects}
	return view{r, func(p *Page) error { return pauseView(p.Out, p.Streams, r, commit, resume) }}
}

// changeView prints the difference on standard output, where a program can read it, and messages on standard error. It sums up generated
// files, unless the reader wants the whole difference. Such a reader is a person who asked for it, or a program that applies the difference
// elsewhere.
func changeView(w io.Writer, s ui.Streams, r *change.Result, verbose bool) error {
	show := diffView
	if verbose {
		show = wholeDiff
	}
	diff := r.Diff
	if !verbose && (s.OutTerminal || !r.DryRun) {
		diff = sumUp(diff)
	}
	if err := show(w, s, diff); err != nil {
		return err
	}
	for _, passed := range r.LeftAlone {
		ui.Fprintf(s.Err, "%s\n", passed)
	}
	switch {
	case !r.Changed && len(r.LeftAlone) > 0:
		ui.FprintText(s.Err, "Nothing else to do.")
		return nil
	case !r.Changed:
		ui.Fprintf(s.Err, "Nothing to do: %s.\n", cmp.Or(r.AsWanted, "the fleet repo has this already"))
		return nil
	case r.DryRun:
		ui.FprintText(s.Err, "Nothing was changed (--dry-run).")
	case r.PullRequest != nil && r.PullRequest.Created:
		ui.Fprintf(s.Err, "%s: pull request %s.\n", r.Summary, r.PullRequest.URL)
	case r.PullRequest != nil:
		ui.Fprintf(s.Err, "%s: pull request %s is up to date.\n", r.Summary, r.PullRequest.URL)
	case r.Pushed:
		ui.Fprintf(s.Err, "%s: pushed as %s.\n", r.Summary, short(r.Commit))
	case r.Commit != "":
		ui.Fprintf(s.Err, "%s: committed as %s.\n", r.Summary, short(r.Commit))
	default:
		ui.Fprintf(s.Err, "%s: written. Flux sees it once it is committed.\n", r.Summary)
	}
	for _, note := range r.Notes {
		ui.Fprintf(s.Err, "%s\n", note)
	}
	return nil
}

// A person sees only the beginning of a new or deleted file with more lines than maxShown, such as the generated files of Flux.
const maxShown, beginning = 100, 12

// wholeDiff writes a difference with every line of it.
func wholeDiff(w io.Writer, s ui.Streams, diff string) error {
	plain := s
	plain.OutTerminal = false
	return diffView(w, plain, diff)
}

// diffView writes a difference, in colour if the reader wants colour. Without a terminal it writes the whole difference, for `git apply`.
func diffView(w io.Writer, s ui.Streams, diff string) error {
	paint := map[byte]func(string) string{'+': ui.Painter(s, ui.Good), '-': ui.Painter(s, ui.Bad), '@': ui.Painter(s, ui.Dim)}
	lines := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
	for i := 0; i < len(lines) && diff != ""; i++ {
		text := lines[i]
		if text != "" && paint[text[0]] != nil {
			text = paint[text[0]](text)
		}
		if _, err := ui.FprintText(w, text); err != nil {
			return err
		}
		if n := wholeFile(lines[i:]); s.OutTerminal && n > maxShown {
			skipped := n - beginning
			for _, line := range lines[i+1 : i+1+beginning] {
				ui.FprintText(w, paint[line[0]](line))
			}
			if _, err := ui.FprintText(w, ui.Painter(s, ui.Dim)("… "+plain.Count(skipped, "more line"))); err != nil {
				return err
			}
			i += n
		}
	}
	return nil
}

// wholeFile returns the number of lines of a new or deleted file, if line is the hunk header of such a file; 0 for any
// other line.
func wholeFile(lines []string) int {
	added, removed := strings.HasPrefix(lines[0], "@@ -0,0 +"), strings.HasPrefix(lines[0], "@@ -") && strings.HasSuffix(lines[0], " +0,0 @@")
	if !added && !removed {
		return 0
	}
	sign := "+"
	if removed {
		sign = "-"
	}
	n := 0
	for n+1 < len(lines) && strings.HasPrefix(lines[n+1], sign) && !strings.HasPrefix(lines[n+1], "--- ") {
		n++
	}
	return n
}

// short abbreviates the hash of a commit.
func short(revision string) string {
	const n = 8
	if len(revision) > n {
		return revision[:n]
	}
	return revision
}

func promoteView(w io.Writer, s ui.Streams, r *promotion.Result, verbose bool) error {
	switch {
	case r.Tagged && r.Change.DryRun:
		ui.Fprintf(s.Err, "Would tag %s as %s.\n", short(r.Commit), r.Tag)
	case r.Tagged:
		ui.Fprintf(s.Err, "Tagged %s as %s.\n", short(r.Commit), r.Tag)
	}
	if r.TagPushed && !r.Tagged {
		ui.Fprintf(s.Err, "Pushed the tag %s, which was in this clone only.\n", r.Tag)
	}
	if r.Release != nil && r.Release.Created {
		ui.Fprintf(s.Err, "Released it: %s\n", r.Release.URL)
	}
	if r.ReleaseNotes != "" {
		ui.FprintText(w, r.ReleaseNotes) // several lines
	}
	if !r.Change.Changed {
		ui.Fprintf(s.Err, "Nothing to do: channel %s is at %s.\n", r.Channel, r.Tag)
		pushWithView(s, r)
		liveView(s, r)
		return nil
	}
	if err := changeView(w, s, r.Change, verbose); err != nil {
		return err
	}
	pushWithView(s, r)
	moved := slices.DeleteFunc(slices.Clone(r.Environments), func(name string) bool { return slices.Contains(r.Paused, name) })
	if len(moved) > 0 && !r.Change.DryRun {
		when := "When Flux has applied that"
		if r.Change.PullRequest != nil {
			when = "When it is merged and Flux has applied it"
		}
		follow := "follows"
		if len(moved) > 1 {
			follow = "follow"
		}
		ui.Fprintf(s.Err, "%s, %s %s %s: `fleetctl promote --status` shows it.\n", when, strings.Join(moved, ", "), follow, r.Tag)
	}
	liveView(s, r)
	return nil
}

// pushWithView says what is left to do with a tag that only this clone has: Flux cannot follow the commit without it.
func pushWithView(s ui.Streams, r *promotion.Result) {
	if r.PushWith != "" {
		ui.Fprintf(s.Err, "The tag %s is in this clone only, and Flux needs it: `%s` pushes it with the commit.\n", r.Tag, r.PushWith)
	}
}

// liveView says for each environment of a promotion what it runs now, or why this is not known.
func liveView(s ui.Streams, r *promotion.Result) {
	for _, l := range r.Live {
		where := l.Environment + " on " + l.ManagementCluster
		switch {
		case l.NotLookedAt != "":
			ui.Fprintf(s.Err, "It is not known what %s runs: %s.\n", where, l.NotLookedAt)
		case l.Arrived:
			ui.Fprintf(s.Err, "%s runs %s (%s), and everything in it is healthy.\n", where, r.Tag, short(l.Applied))
		default:
			ui.Fprintf(s.Err, "%s does not run %s yet, but %s: %s.\n", where, r.Tag, cmp.Or(short(l.Applied), "no commit"), l.Missing)
		}
	}
	if n := len(r.NotAsked); n > 0 {
		ui.Fprintf(s.Err, "The Flux of %s could not be asked from this machine, so only what the management cluster knows counts there. "+
			"%s: %s.\n", plain.Count(n, "cluster"), r.NotAsked[0].Cluster, r.NotAsked[0].Reason)
	}
}

func promotionsView(p *Page, r *promotion.Status) error {
	w, short := p.Out, short
	if p.Format == ui.Wide {
		short = func(revision string) string { return revision }
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	ui.FprintText(t, "ENVIRONMENT\tMANAGEMENT CLUSTER\tCHANNEL\tGIT\tRUNS\tREADY\tWAITING")
	for _, e := range r.Environments {
		git, waiting := cmp.Or(e.Tag, short(e.Wanted), e.Branch, "no tag yet"), strconv.Itoa(len(e.Waiting))
		if e.NotCompared != "" {
			waiting = "?"
		}
		ui.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.Name, e.ManagementCluster, e.Channel, git, cmp.Or(short(e.Applied), "?"),
			yesNo(e.Ready), waiting)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.NotFetched != "" {
		ui.Fprintf(w, "\nThe remote could not be read, so GIT and WAITING are what this clone knows: others may have pushed commits and tags "+
			"since.\n%s\n", r.NotFetched)
		if r.Hint != "" {
			ui.Fprintf(w, "hint: %s\n", r.Hint)
		}
	}
	for _, e := range r.Environments {
		if e.Reason != "" {
			ui.Fprintf(w, "\n%s on %s: %s\n", e.Name, e.ManagementCluster, e.Reason)
		}
		if e.TagOnlyHere {
			ui.Fprintf(w, "\n%s on %s: the tag %s is in this clone only, so Flux cannot follow it: `fleetctl promote` pushes it.\n",
				e.Name, e.ManagementCluster, e.Tag)
		}
		if e.NotCompared != "" {
			ui.Fprintf(w, "\nIt is not known what waits for %s on %s: %s.\n", e.Name, e.ManagementCluster, e.NotCompared)
		}
		if len(e.Waiting) > 0 {
			ui.Fprintf(w, "\nWaits for %s on %s:\n", e.Name, e.ManagementCluster)
		}
		for _, commit := range e.Waiting {
			ui.Fprintf(w, "  %s %s (%s)\n", short(commit.Commit), commit.Subject, commit.Author)
		}
	}
	return nil
}

// pauseResult is the result of --now.
type pauseResult struct {
	FormatVersion string                `json:"formatVersion"`
	Suspended     bool                  `json:"suspended"`
	Objects       []management.Switched `json:"objects"`
}

func pauseView(w io.Writer, s ui.Streams, r *pauseResult, commit, resume string) error {
	verb, already := "suspended", "was suspended already"
	if !r.Suspended {
		verb, already = "resumed", "was not suspended"
	}
	differs := false
	for _, o := range r.Objects {
		state := verb
		switch {
		case o.Absent:
			state = "does not exist"
		case o.Below && !o.Changed && !r.Suspended:
			state = "stays suspended, because it was before"
		case !o.Changed:
			state = already
		}
		at := o.ManagementCluster
		if o.Cluster != "" {
			at = "cluster " + o.Cluster
		}
		ui.Fprintf(w, "%s %s/%s on %s: %s\n", o.Kind, o.Namespace, o.Name, at, state)
		differs = differs || !o.Absent && !o.Below && o.InGit != r.Suspended
	}
	switch {
	case differs && r.Suspended && commit == "":
		ui.Fprintf(s.Err, "Git cannot have this change: Flux would not see the commit that takes it back. `%s` ends the pause.\n", resume)
	case differs && r.Suspended:
		ui.Fprintf(s.Err, "Git does not have this change: `fleetctl status` shows the difference until you run `%s`.\n", commit)
	case differs && commit == "":
		ui.FprintText(s.Err, "It is suspended in Git, so Flux will suspend it again: remove `suspend: true` from it in an editor, and commit that.")
	case differs:
		ui.Fprintf(s.Err, "It is suspended in Git, so Flux will suspend it again: `%s` changes Git.\n", commit)
	}
	return nil
}
