package cmd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// flagError turns the error for an unknown flag, or for a value that a flag does not accept, into a usage error with a hint. If a word
// before the flag is not a command, the error is about the word, because the flag may belong to the intended command.
func flagError(c *cobra.Command, err error) error {
	if c.HasSubCommands() {
		if unknown := anyCommand(c, c.Flags().Args()); unknown != nil {
			return unknown
		}
	}
	hint := "see `" + c.CommandPath() + " --help`"
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		if near := diag.Nearest(unknown.GetSpecifiedName(), flagNames(c)); near != "" {
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

// takenBy describes the values of a flag, by pflag's name of its type. pflag's own errors are those of Go's parsers.
var takenBy = map[string]string{
	"bool":     "true or false",
	"duration": "a duration, such as 90s or 5m",
	"int":      "a whole number",
}

// flagNames are the flags that a command's help shows.
func flagNames(c *cobra.Command) []string {
	var names []string
	c.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			names = append(names, flag.Name)
		}
	})
	return names
}
