package cmd

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// changeFlags are those of every command that edits the fleet repo.
type changeFlags struct {
	dryRun, commit, push, pr  bool
	noVerify                  bool
	tokenFile, keyFile, forge string
	remote                    bool // the command asks the remote, whatever the flags say
}

func (o *changeFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.BoolVar(&o.dryRun, "dry-run", false, "show the difference and change nothing")
	fs.BoolVar(&o.commit, "commit", false, "commit the changed files, and no others")
	fs.BoolVar(&o.push, "push", false, "commit and push; where others have pushed meanwhile, the change is made again on top of theirs")
	fs.BoolVar(&o.noVerify, "no-verify", false, "leave out the Git hooks that could refuse: pre-commit, commit-msg and pre-push")
	fs.BoolVar(&o.pr, "pr", false, "commit to a branch of its own, push that, and open a pull request, or update the one that is open")
	fs.StringVar(&o.forge, "forge", "", "what the remote runs on, for --pr: github, gitlab or gitea (default: spec.git.forge, or by the host's name)")
	fs.StringVar(&o.tokenFile, "git-token-file", "", "file with the token of an https remote, and of --pr (default: the environment variable FLEETCTL_GIT_TOKEN)")
	completeFlag(c, "forge", cobra.FixedCompletions([]string{"github", "gitlab", "gitea"}, cobra.ShellCompDirectiveNoFileComp))
	fs.StringVar(&o.keyFile, "ssh-key-file", "", "private key for an ssh remote (default: the agent)")
}

// editing is what the help of such a command says; editingFlags is the part for those that show no difference.
const (
	editing = `

It works on the files alone, shows the difference and needs no cluster. --dry-run writes nothing; --commit, --push and --pr carry
the change on. Comments and formatting of the files stay as they are.`
	editingFlags = `

--dry-run writes nothing; --commit, --push and --pr carry the change on. No difference is shown: it could hold what is secret.`
)

// changeOptions are what these flags say.
func (f *factory) changeOptions(o *changeFlags) (change.Options, error) {
	options := change.Options{DryRun: o.dryRun, Commit: o.commit, Push: o.push, PullRequest: o.pr, NoVerify: o.noVerify, Forge: v1alpha1.ForgeType(o.forge), CacheDir: f.cacheDir()}
	if o.pr && o.push {
		return options, diag.Usage("leave one of them out", "--push and --pr are two ways to the same branch")
	}
	options.Git.SSHKeyFile = o.keyFile
	var err error
	if options.Dir, err = f.repoDir(); err != nil {
		return options, err
	}
	if o.push || o.pr || o.remote {
		options.Git.Token, err = readToken(o.tokenFile)
	}
	return options, err
}

// runChange makes an edit and shows it.
func runChange(c *cobra.Command, f *factory, o *changeFlags, options change.Options) error {
	given, err := f.changeOptions(o)
	if err != nil {
		return err
	}
	given.Edit, given.Confirm = options.Edit, options.Confirm
	options = given
	result, err := change.Make(c.Context(), options)
	if err != nil {
		return err
	}
	return ui.Print(f.streams, f.format, result, func(w io.Writer) error {
		return changeView(w, f.streams, result, f.flags.verbose)
	})
}

// edit is runChange for an edit that needs nothing else.
func edit(c *cobra.Command, f *factory, o *changeFlags, makeEdit func(r *fleetrepo.Repo) (*fleetrepo.Edit, error)) error {
	return runChange(c, f, o, change.Options{Edit: makeEdit})
}

// changeView puts the difference on standard output, where a program can take it, and what there is to say on standard error. What was generated is
// summed up, unless all of it is wanted: by somebody who says so, or by a program that is to apply what was not changed here.
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
		ui.Fprintf(s.Err, "Nothing to do: %s.\n", cmp.Or(r.AsWanted, "all is as wanted"))
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
		ui.Fprintf(s.Err, "%s: written. Commit it to make it so.\n", r.Summary)
	}
	for _, note := range r.Notes {
		ui.Fprintf(s.Err, "%s\n", note)
	}
	return nil
}

// A person is not shown all of a file that comes or goes with more lines than maxShown, such as the generated ones of Flux, but how it begins.
const maxShown, beginning = 100, 12

// wholeDiff writes a difference with every line of it.
func wholeDiff(w io.Writer, s ui.Streams, diff string) error {
	plain := s
	plain.OutTerminal = false
	return diffView(w, plain, diff)
}

// diffView writes a difference, in colour where that is welcome. What is not at a terminal gets all of it: `git apply` takes it.
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
			if _, err := ui.FprintText(w, ui.Painter(s, ui.Dim)(fmt.Sprintf("… %d more lines", skipped))); err != nil {
				return err
			}
			i += n
		}
	}
	return nil
}

// wholeFile is how many lines of a file come or go below the line of a difference that says so; 0 for any other line.
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

// fleetRepo opens the fleet repo of --repo.
func (f *factory) fleetRepo() (*fleetrepo.Repo, error) {
	dir, err := f.repoDir()
	if err != nil {
		return nil, err
	}
	return fleetrepo.Open(dir)
}

// completeFrom completes the n-th argument, or a flag where n is negative, with names from the fleet repo.
func (f *factory) completeFrom(n int, names func(r *fleetrepo.Repo, args []string) []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if n >= 0 && len(args) != n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		repo, err := f.fleetRepo()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return names(repo, args), cobra.ShellCompDirectiveNoFileComp
	}
}

func clusterNames(r *fleetrepo.Repo, _ []string) []string { return r.Names() }

// poolNames are those of the cluster that the first argument names.
func poolNames(r *fleetrepo.Repo, args []string) []string {
	c, err := r.Cluster(args[0])
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(c.Pools))
	for _, p := range c.Pools {
		names = append(names, p.Name)
	}
	return names
}
