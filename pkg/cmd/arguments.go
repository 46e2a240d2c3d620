package cmd

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// argument is a positional argument of a command. At a terminal, the command asks for a missing one.
type argument struct {
	// what is the kind of the named object: cluster, pool.
	what string
	// choices are the existing names in the fleet repo, for the arguments before this one; nil for the name of a new object.
	choices func(r *fleetrepo.Repo, args []string) []string
	// open means that other names than the choices are valid, too.
	open bool
	// any means that clusters of plain manifests are choices as well, for commands that only look. They work without a fleet.yaml, too.
	any bool
	// command is the command whose add makes such an object, if it is not called what.
	command string
}

// The arguments of more than one command.
var (
	ofCluster     = argument{what: "cluster", choices: clusterNames}
	ofAnyCluster  = argument{what: "cluster", choices: clusterNames, any: true}
	ofPool        = argument{what: "pool", choices: poolNames}
	ofEnvironment = argument{what: "environment", choices: environmentNames}
	ofFeature     = argument{what: "feature", choices: featureNames}
)

// takes declares the arguments of a command. It completes them in a shell and asks for missing ones at a terminal. Without a terminal, a
// missing argument is an error that lists the choices. The command's RunE must be set before; it gets all arguments.
func takes(f *factory, c *cobra.Command, wanted ...argument) {
	c.Args = cobra.MaximumNArgs(len(wanted))
	c.ValidArgsFunction = func(c *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(wanted) || wanted[len(args)].choices == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if wanted[len(args)].any {
			return f.completeDeclared(c, args, toComplete)
		}
		return f.completeFrom(len(args), wanted[len(args)].choices)(c, args, toComplete)
	}
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		for _, a := range wanted[len(args):] {
			answer, err := a.ask(f, c, args)
			if err != nil {
				return err
			}
			args = append(args, answer)
		}
		return run(c, args)
	}
}

// ask asks for the argument at the terminal. args are the arguments before it.
func (a argument) ask(f *factory, c *cobra.Command, args []string) (string, error) {
	q := ui.Question{
		Text: "Name of the " + a.what, Open: a.open, Missing: fmt.Sprintf("the name of the %s is missing", a.what),
		Hint: "give it: " + usageOf(c),
	}
	if a.choices == nil && !f.streams.InTerminal {
		return ui.Ask(f.streams, q.Text, q.Missing, q.Hint)
	}
	open := f.fleetRepo
	if a.any {
		open = f.anyRepo
	}
	repo, err := open() // first of all: without a fleet repo no answer helps
	if err != nil {
		return "", err
	}
	if a.choices == nil {
		return ui.Ask(f.streams, q.Text, q.Missing, q.Hint)
	}
	if a.any {
		q.Choices = f.declaredNames(c.Context(), repo)
	} else {
		q.Choices = a.choices(repo, args)
	}
	if len(q.Choices) > 0 {
		return q.Ask(f.streams)
	}
	if a.open {
		return ui.Ask(f.streams, q.Text, q.Missing, q.Hint)
	}
	if len(args) > 0 { // report an unknown cluster, and not that it has no pools
		if _, err := repo.Cluster(args[0]); err != nil {
			return "", err
		}
	}
	hint := "`fleetctl " + cmp.Or(a.command, a.what) + " add` makes one"
	if a.what == ofCluster.what {
		hint = repo.NoCluster()
	}
	return "", diag.Usage(hint, "there is no %s", a.what)
}

// askNow asks for a value of a cluster at a terminal and shows the present value, which now returns. Without a terminal it fails as
// ui.Ask does. An unknown cluster is an error.
func askNow(f *factory, cluster, question, missing, hint string, now func(c *fleetrepo.Cluster) string) (string, error) {
	if f.streams.InTerminal {
		repo, err := f.fleetRepo()
		if err != nil {
			return "", err
		}
		c, err := repo.Cluster(cluster)
		if err != nil {
			return "", err
		}
		if value := now(c); value != "" {
			question += " (now " + value + ")"
		}
	}
	return ui.Ask(f.streams, question, missing, hint)
}

// newRemoveCmd completes a command that removes the object that its only argument names.
func newRemoveCmd(
	f *factory,
	c *cobra.Command,
	what argument,
	remove func(r *fleetrepo.Repo, name string) (*fleetrepo.Edit, error),
) *cobra.Command {
	o := &removeOptions{remove: remove}
	c.Use, c.RunE = "remove NAME", running(f, o, runEdit)
	o.add(c)
	takes(f, c, what)
	return c
}

// removeOptions are the options of a command of newRemoveCmd.
type removeOptions struct {
	changeFlags
	named
	remove func(r *fleetrepo.Repo, name string) (*fleetrepo.Edit, error)
}

func (o *removeOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) { return o.remove(r, o.name) }

// alsoCalled gives a flag of a command other names.
func alsoCalled(c *cobra.Command, name string, others ...string) {
	c.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, given string) pflag.NormalizedName {
		if slices.Contains(others, given) {
			given = name
		}
		return pflag.NormalizedName(given)
	})
}

// synonyms are other common words for the names of commands.
var synonyms = map[string][]string{"remove": {"delete", "rm"}, "delete": {"remove", "rm"}, "list": {"ls"}}

// addSynonyms adds the synonyms as aliases to every command of the tree.
func addSynonyms(c *cobra.Command) {
	c.Aliases = append(c.Aliases, synonyms[c.Name()]...)
	for _, sub := range c.Commands() {
		addSynonyms(sub)
	}
}
