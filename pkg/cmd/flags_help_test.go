package cmd

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fleetctl/fleetctl/pkg/ui"
)

// TestBackquotesInHelpOfFlags looks at the word that stands for a flag's value. Backquotes in a flag's help name it, so that a command
// between backquotes stands behind the flag: "--offline fleetctl init".
func TestBackquotesInHelpOfFlags(t *testing.T) {
	checked := 0
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		c.Flags().VisitAll(func(flag *pflag.Flag) {
			checked++
			if word, help := pflag.UnquoteUsage(flag); strings.ContainsAny(word, " |") {
				t.Errorf("%s: the help of --%s shows %q as its value: %s", c.CommandPath(), flag.Name, word, help)
			}
		})
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check(Root(ui.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}))
	if checked < 100 {
		t.Errorf("found only %d flags", checked)
	}
}

// TestOtherNamesOfFlags tries every name that a flag's help says it has, too.
func TestOtherNamesOfFlags(t *testing.T) {
	also, name := regexp.MustCompile(`\(also: ([^;)]+)`), regexp.MustCompile(`--([a-z-]+)`)
	checked := 0
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		c.Flags().VisitAll(func(flag *pflag.Flag) {
			said := also.FindStringSubmatch(flag.Usage)
			if said == nil {
				return
			}
			for _, other := range name.FindAllStringSubmatch(said[1], -1) {
				checked++
				if c.Flags().Lookup(other[1]) == nil {
					t.Errorf("%s: --%s is not known, which the help of --%s promises", c.CommandPath(), other[1], flag.Name)
				}
			}
		})
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check(Root(ui.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}))
	if checked < 5 {
		t.Errorf("found only %d names", checked)
	}
}
