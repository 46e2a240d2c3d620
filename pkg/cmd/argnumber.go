package cmd

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// wrongArguments says in the words of the command's usage line which argument is missing, or which one is too many.
func wrongArguments(c *cobra.Command, given []string) error {
	names, required := argumentNames(c)
	if len(given) < required {
		return diag.Usage("give it: "+usageOf(c), "the argument %s is missing", names[len(given)])
	}
	hint := "see `" + c.CommandPath() + " --help`"
	extra := given[min(len(names), len(given)-1)]
	c.Flags().Visit(func(flag *pflag.Flag) { // a flag whose value is optional takes no separate word as its value
		if flag.Value.Type() != "bool" && flag.NoOptDefVal != "" && flag.Value.String() == flag.NoOptDefVal {
			hint = "give --" + flag.Name + " a value with an equals sign: --" + flag.Name + "=" + extra
		}
	})
	if meant := asFlag(c, given, extra); meant != "" {
		hint = "give it with a flag: `" + meant + "`"
	}
	if len(names) == 0 {
		return diag.Usage(hint, "%s takes flags only, no argument such as %q", c.CommandPath(), extra)
	}
	return diag.Usage(hint, "%s takes %s and no more: %q is one argument too many", c.CommandPath(), strings.Join(names, " and "), extra)
}

// asFlag returns the command with extra as the value of the flag that takes such a value: a version, or a number of replicas. It returns
// the empty string if c has no such flag, if the flag is given already, or if there is more than one argument too many.
func asFlag(c *cobra.Command, given []string, extra string) string {
	var names []string
	if _, err := strconv.ParseUint(extra, 10, 31); err == nil {
		names = []string{"replicas"}
	} else if _, err := version.ParseGeneric(extra); err == nil {
		names = []string{"version", "to"}
	}
	taken, _ := argumentNames(c)
	for _, name := range names {
		if flag := c.Flags().Lookup(name); flag != nil && !flag.Changed && len(given) == len(taken)+1 {
			words := append(strings.Fields(c.CommandPath()), given[:len(taken)]...)
			return diag.ShellCommand(append(words, "--"+name, extra)...)
		}
	}
	return ""
}

// emptyArgument refuses an empty argument, which a script gives if one of its variables is not set. Arguments after --
// belong to another program.
func emptyArgument(c *cobra.Command, given []string) error {
	if dash := c.ArgsLenAtDash(); dash >= 0 {
		given = given[:dash]
	}
	i := slices.Index(given, "")
	if i < 0 {
		return nil
	}
	name := ""
	if names, _ := argumentNames(c); len(names) > 0 {
		name = " " + names[min(i, len(names)-1)]
	}
	return diag.Usage("give it, or check whether a variable of your script is not set: "+usageOf(c), "the argument%s is empty", name)
}

// usageOf returns the usage line of c as a command to read.
func usageOf(c *cobra.Command) string {
	return "`" + c.CommandPath() + " " + strings.Join(strings.Fields(c.Use)[1:], " ") + "`"
}

// argumentNames returns the arguments in the usage line of c, and how many of them are required.
func argumentNames(c *cobra.Command) (names []string, required int) {
	fields := strings.Fields(c.Use)[1:]
	if flag := slices.IndexFunc(fields, func(field string) bool { return len(field) > 2 && strings.HasPrefix(field, "--") }); flag >= 0 {
		fields = fields[:flag]
	}
	for _, field := range fields {
		if field == "[flags]" || field == "--" {
			continue
		}
		if !strings.HasPrefix(field, "[") {
			required++
		}
		if strings.HasPrefix(field, "[") {
			field = strings.Trim(field, "[]…. ")
		}
		names = append(names, field)
	}
	return names, required
}
