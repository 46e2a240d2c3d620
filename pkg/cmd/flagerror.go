package cmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// flagError turns the error for an unknown flag, or for a value that a flag does not accept, into a usage error with a hint. If a word
// before the flag is not a command, the error is about the word, because the flag may belong to the intended command. line is the whole
// command line.
func flagError(c *cobra.Command, err error, line []string) error {
	if c.HasSubCommands() {
		if misplaced := beforeCommand(c, err, line); misplaced != nil {
			return misplaced
		}
	}
	hint := "see `" + c.CommandPath() + " --help`"
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		if unknown.GetSpecifiedName() == "offline" && c.Flags().Lookup("bundle") != nil {
			hint = "give --bundle: what the command needs then comes from the bundle, and not over the network"
		} else if near := diag.Nearest(unknown.GetSpecifiedName(), flagNames(c)); near != "" {
			hint = "did you mean --" + near + "?"
		}
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if takes := takenBy[invalid.GetFlag().Value.Type()]; takes != "" {
			err = fmt.Errorf("invalid argument %q for %q: it takes %s", invalid.GetValue(), "--"+invalid.GetFlag().Name, takes)
		}
	}
	if renamed, ok := errors.AsType[*renamedFlagError](err); ok {
		err = renamed
	}
	return &diag.Error{Err: err, Hint: hint, Code: diag.ExitUsage}
}

// beforeCommand returns the error for a flag before the command that it belongs to, if c has only subcommands. If no
// command has such a flag, it returns the error for the command. It returns nil if line names no command.
func beforeCommand(c *cobra.Command, err error, line []string) error {
	words := wordsOf(c, line)
	found := c
	for len(words) > 0 {
		sub := called(found, words[0])
		if sub == nil {
			break
		}
		found, words = sub, words[1:]
	}
	if found.HasSubCommands() {
		return anyCommand(found, words)
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || found == c {
		return nil
	}
	name := unknown.GetSpecifiedName()
	if found.Flags().Lookup(name) == nil {
		return flagError(found, err, line)
	}
	return &diag.Error{Err: err, Hint: "write it behind the command: `" + found.CommandPath() + " … --" + name + "`", Code: diag.ExitUsage}
}

// wordsOf returns the words of a command line after the name of c. It leaves out flags and, as far as c and the
// commands below it know the flags, their values.
func wordsOf(c *cobra.Command, line []string) (words []string) {
	depth := len(strings.Fields(c.CommandPath())) - 1
	value := false
	for _, word := range line {
		switch {
		case value:
			value = false
		case strings.HasPrefix(word, "-"):
			flag := flagBelow(c.Root(), word)
			value = flag != nil && flag.NoOptDefVal == ""
		default:
			words = append(words, word)
		}
	}
	return words[min(depth, len(words)):]
}

// flagBelow returns the flag that a word such as --repo or -C names without a value, of c or of a command below it; nil
// if there is none.
func flagBelow(c *cobra.Command, word string) *pflag.Flag {
	for _, flags := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
		if flag := flagNamed(flags, word); flag != nil {
			return flag
		}
	}
	for _, sub := range c.Commands() {
		if flag := flagBelow(sub, word); flag != nil {
			return flag
		}
	}
	return nil
}

// flagNamed returns the flag that a word such as --repo or -C names; nil if there is none.
func flagNamed(flags *pflag.FlagSet, word string) *pflag.Flag {
	if name, isLong := strings.CutPrefix(word, "--"); isLong {
		return flags.Lookup(name)
	}
	if short := word[1:]; len(short) == 1 {
		return flags.ShorthandLookup(short)
	}
	return nil
}

// takenBy describes the values that a flag takes, by pflag's name for the type. pflag's own errors quote Go's parsers.
var takenBy = map[string]string{
	"bool":     "true or false",
	"duration": "a duration, such as 90s or 5m",
	"int":      "a whole number",
}

// flagForValue returns the usage error for a flag without its value. pflag takes the next flag for the value then, so that any other error
// would be about something else.
func flagForValue(c *cobra.Command) error {
	var err error
	c.Flags().Visit(func(flag *pflag.Flag) {
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			if name, _, _ := strings.Cut(value, "="); strings.HasPrefix(name, "-") && len(name) > 1 && flagBelow(c.Root(), name) != nil {
				err = &diag.Error{
					Err:  fmt.Errorf("--%s has no value: the next word is the flag %s", flag.Name, name),
					Hint: "write the value behind --" + flag.Name + "; see `" + c.CommandPath() + " --help`", Code: diag.ExitUsage,
				}
			}
		}
	})
	return err
}

// flagNames returns the flags that the help of a command shows.
func flagNames(c *cobra.Command) []string {
	var names []string
	c.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			names = append(names, flag.Name)
		}
	})
	return names
}
