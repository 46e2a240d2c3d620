package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// changeFlags are the flags of every command that edits the fleet repo.
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
	fs.BoolVar(&o.push, "push", false, "commit and push; if others have pushed meanwhile, make the change again on top of theirs")
	fs.BoolVar(&o.noVerify, "no-verify", false, "skip the Git hooks that could refuse: pre-commit, commit-msg and pre-push")
	fs.BoolVar(&o.pr, "pr", false, "commit to a separate branch, push it, and open a pull request, or update the open one")
	fs.StringVar(&o.forge, "forge", "", "forge of the remote, for --pr: "+v1alpha1.ForgeNames(" or ")+
		" (default: spec.git.forge, or by the host's name)")
	fs.StringVar(&o.tokenFile, "git-token-file", "",
		"file with the token of an https remote, and of --pr (default: the environment variable FLEETCTL_GIT_TOKEN)")
	completeFlag(c, "forge", completeForges)
	fs.StringVar(&o.keyFile, "ssh-key-file", "", "private key for an ssh remote (default: the agent)")
}

// completeForges completes the name of a forge.
func completeForges(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, forge := range v1alpha1.ForgeTypes() {
		names = append(names, string(forge))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// editing is the end of the help of a command that edits the fleet repo. editingFlags is the same for a command that shows no difference.
const (
	editing = `

The command edits files, shows the difference and needs no cluster. --dry-run writes nothing. --commit commits the change,
--push also pushes it, and --pr opens a pull request. Comments and formatting of the files stay as they are.`
	editingFlags = `

--dry-run writes nothing. --commit commits the change, --push also pushes it, and --pr opens a pull request. The command
shows no difference, because a difference could show a secret.`
)

// changeOptions converts the flags to options of the workflow.
func (f *factory) changeOptions(o *changeFlags) (change.Options, error) {
	cacheDir, err := f.cacheDir()
	if err != nil {
		return change.Options{}, err
	}
	options := change.Options{
		DryRun: o.dryRun, Commit: o.commit, Push: o.push, PullRequest: o.pr, NoVerify: o.noVerify,
		Forge: v1alpha1.ForgeType(o.forge), CacheDir: cacheDir,
	}
	if o.pr && o.push {
		return options, diag.Usage("leave one of them out", "--push and --pr are two ways to the same branch")
	}
	options.Git.SSHKeyFile = o.keyFile
	if options.Dir, err = f.repoDir(); err != nil {
		return options, err
	}
	if o.push || o.pr || o.remote {
		options.Git.Token, err = readToken(o.tokenFile)
	}
	return options, err
}

// runChange makes an edit and shows it.
func runChange(ctx context.Context, f *factory, o *changeFlags, options change.Options) error {
	given, err := f.changeOptions(o)
	if err != nil {
		return err
	}
	given.Edit, given.Confirm = options.Edit, options.Confirm
	options = given
	result, err := change.Make(ctx, options)
	if err != nil {
		return err
	}
	return f.show(views.Change(result))
}

// editOptions are the options of a command that makes one edit of the fleet repo.
type editOptions interface {
	options
	// changes are the flags that say how the edit goes to Git. Options that embed changeFlags have this method.
	changes() *changeFlags
	edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error)
}

func (o *changeFlags) changes() *changeFlags { return o }

// runEdit is runChange for an edit that needs nothing else.
func runEdit[O editOptions](ctx context.Context, f *factory, o O) error {
	return runChange(ctx, f, o.changes(), change.Options{Edit: o.edit})
}

// fleetRepo opens the fleet repo of --repo.
func (f *factory) fleetRepo() (*fleetrepo.Repo, error) {
	dir, err := f.repoDir()
	if err != nil {
		return nil, err
	}
	return fleetrepo.Open(dir)
}

// completeFrom completes the n-th argument, or a flag if n is negative, with names from the fleet repo. Without a readable fleet repo there
// are none, and a shell must not offer files instead.
func (f *factory) completeFrom(n int, names func(r *fleetrepo.Repo, args []string) []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if n >= 0 && len(args) != n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		repo, err := f.fleetRepo()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(repo, args), cobra.ShellCompDirectiveNoFileComp
	}
}

func clusterNames(r *fleetrepo.Repo, _ []string) []string { return r.Choices() }

// poolNames are the names of the pools of the cluster that the first argument names.
func poolNames(r *fleetrepo.Repo, args []string) []string {
	if len(args) == 0 {
		return nil
	}
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
