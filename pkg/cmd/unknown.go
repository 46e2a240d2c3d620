package cmd

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// anyCommand is the Args of a command that has only subcommands. An argument that remains is not the name of a
// subcommand.
func anyCommand(c *cobra.Command, given []string) error {
	if len(given) == 0 {
		return nil
	}
	hint := "see `" + c.CommandPath() + " --help`"
	switch meant := meantBy(c, given); {
	case isNoun(c) && len(meant) > 1:
		hint = "`" + c.CommandPath() + "` has: " + strings.Join(namesOf(c), ", ")
	case len(meant) > 0:
		hint = didYouMean(meant)
	}
	return diag.Usage(hint, "unknown command %q for %q", given[0], c.CommandPath())
}

// isNoun tells whether c names a kind of object, and its subcommands say what to do with one. So whoever names a verb that c lacks has
// chosen the noun, and the same verb of other nouns is no help.
func isNoun(c *cobra.Command) bool {
	return c.HasParent() && !c.Parent().HasParent() && c.HasSubCommands()
}

// namesOf are the names of the subcommands of c.
func namesOf(c *cobra.Command) (names []string) {
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

// otherWords are common words of other programs for commands. They are no aliases, because several commands of fleetctl could be meant.
var otherWords = map[string][]string{
	"create": {"add"}, "new": {"add"}, "get": {"list"}, "edit": {"set"}, "stop": {"pause"}, "start": {"resume"}, "unpause": {"resume"},
	"describe": {"show"}, "inspect": {"show"}, "clone": {"add"}, "copy": {"add"},
}

// meantBy returns the commands that the words given below c may mean: first subcommands of c under another word, then commands of the
// same name elsewhere, and last commands with a similar name.
func meantBy(c *cobra.Command, given []string) (meant []*cobra.Command) {
	words := append([]string{given[0]}, otherWords[given[0]]...)
	for _, word := range words {
		if here := called(c, word); here != nil {
			return []*cobra.Command{here}
		}
	}
	for _, word := range words {
		meant = append(meant, allCalled(c.Root(), word)...)
	}
	if len(given) > 1 { // for "pause cluster": the noun names the command
		if noun := called(c.Root(), given[1]); noun != nil {
			elsewhere := func(found *cobra.Command) bool { return found.Parent() != noun }
			if slices.ContainsFunc(meant, func(found *cobra.Command) bool { return !elsewhere(found) }) {
				meant = slices.DeleteFunc(meant, elsewhere)
			}
		}
	}
	if len(meant) > 0 {
		return meant
	}
	c.SuggestionsMinimumDistance = 2
	for _, near := range c.SuggestionsFor(given[0]) {
		return []*cobra.Command{called(c, near)}
	}
	return nil
}

// didYouMean is a hint that names commands. For many commands it names one as an example, and only the nouns of the
// others.
func didYouMean(meant []*cobra.Command) string {
	const most = 4
	if len(meant) <= most {
		var lines []string
		for _, c := range meant {
			lines = append(lines, "`"+c.CommandPath()+"`")
		}
		return "did you mean " + strings.Join(lines, " or ") + "?"
	}
	example := meant[0]
	var others []string
	for _, c := range meant {
		if c.Parent().Name() == "cluster" {
			example = c
		}
	}
	for _, c := range meant {
		if noun := c.Parent().Name(); noun != example.Parent().Name() {
			others = append(others, noun)
		}
	}
	return "name the kind of object first, as in `" + example.CommandPath() + "`; also for " + strings.Join(others, ", ")
}

// called returns the subcommand of c with a name, which may be the plural; nil if there is none.
func called(c *cobra.Command, name string) *cobra.Command {
	for _, sub := range c.Commands() {
		if !sub.Hidden && (sub.Name() == name || sub.HasAlias(name) || sub.Name()+"s" == name) {
			return sub
		}
	}
	return nil
}

// allCalled returns the commands below c with a name.
func allCalled(c *cobra.Command, name string) (all []*cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.Hidden {
			continue
		}
		if sub.Name() == name || sub.HasAlias(name) {
			all = append(all, sub)
		}
		all = append(all, allCalled(sub, name)...)
	}
	return all
}

// refusingHelp makes the help of an unknown command fail, as running it does. A flag after a known command does not
// prevent its help.
func refusingHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help := called(root, "help")
	help.FParseErrWhitelist.UnknownFlags = true
	help.Args = func(_ *cobra.Command, words []string) error {
		found := root
		for found.HasSubCommands() && len(words) > 0 {
			sub := called(found, words[0])
			if sub == nil {
				return anyCommand(found, words)
			}
			found, words = sub, words[1:]
		}
		return nil
	}
}
