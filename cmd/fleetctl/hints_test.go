package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fleetctl/fleetctl/pkg/cmd"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// inText finds the commands in what the program says: between backquotes, or a text that is one, as a next step is.
var inText = regexp.MustCompile("`(fleetctl [^`\n]*)`|^(fleetctl [a-z][^`\n]*)$")

// verb is a place that fmt fills in.
var verb = regexp.MustCompile(`%(\[\d\])?[sdvq]`)

// sentence begins with the program, and is no command.
var sentence = regexp.MustCompile(`^fleetctl (has|does|brings|git server|init installs) ?`)

// filledIn stands for what is known only when the program runs. As a value it has to be of a kind that most flags take.
const filledIn = "1"

// withFlag finds a flag that a text names behind a command, or behind several: `fleetctl feature list` with --output.
var withFlag = regexp.MustCompile("`(fleetctl [^`\n]*)`((?:(?:,| and| or|, and|, or) `[^`\n]*`)*) with (--[a-z][a-z-]*)")

// flagAlone finds a flag in a hint that is in no command.
var flagAlone = regexp.MustCompile(`(?:^|[ (])--([a-z][a-z-]*)`)

// ofGit finds a command of Git, whose flags are others.
var ofGit = regexp.MustCompile(`\bgit [a-z]`)

// TestCommandsInHints holds every command that a hint, a note, a next step or a help text names against the real ones: whoever reads one
// types it. It also holds the flags that a text names behind a command against that command's, and those that a hint names alone against
// the flags of all commands.
func TestCommandsInHints(t *testing.T) {
	checked := 0
	known := everyFlag()
	inSources(t, []string{"pkg"}, func(at token.Position, n ast.Node) bool {
		if made := makes(n); made != "" {
			checked++
			if err := checkCommand(made); err != nil {
				t.Errorf("%s: %q: %v", at, made, err)
			}
		}
		for _, match := range flagAlone.FindAllStringSubmatch(inBackquotes.ReplaceAllString(hintOf(n), ""), -1) {
			if !known[match[1]] {
				t.Errorf("%s: no command has a flag --%s", at, match[1])
			}
		}
		expression, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		text, ok := textOf(expression)
		if !ok {
			return true
		}
		for _, found := range inText.FindAllStringSubmatch(verb.ReplaceAllString(text, filledIn), -1) {
			line := strings.ReplaceAll(found[1]+found[2], "%%", "%")
			if strings.Contains(line, `"`) || found[2] != "" && sentence.MatchString(line) || strings.HasSuffix(line, " --help") ||
				line == "fleetctl "+filledIn+" add" {
				continue
			}
			checked++
			if err := checkCommand(line); err != nil {
				t.Errorf("%s: %q: %v", at, line, err)
			}
		}
		for _, found := range withFlag.FindAllStringSubmatch(verb.ReplaceAllString(text, filledIn), -1) {
			checked++
			if err := checkFlag(found[1], found[3]); err != nil {
				t.Errorf("%s: %q: %v", at, found[0], err)
			}
		}
		return false
	})
	if checked < 300 {
		t.Errorf("found only %d commands", checked)
	}
	t.Logf("%d commands", checked)
}

// inBackquotes is a command in a text.
var inBackquotes = regexp.MustCompile("`[^`]*`")

// hintOf is the hint of a call that makes an error; "" if a node is none, or if its hint is not in the call.
func hintOf(n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) < 2 {
		return ""
	}
	made, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Errorf", "Usage", "NotReady"}, made.Sel.Name) {
		return ""
	}
	if of, ok := made.X.(*ast.Ident); !ok || of.Name != "diag" {
		return ""
	}
	hint, _ := textOf(call.Args[0])
	if ofGit.MatchString(hint) {
		return ""
	}
	return hint
}

// everyFlag are the names of the flags of all commands.
func everyFlag() map[string]bool {
	known := map[string]bool{}
	var add func(c *cobra.Command)
	add = func(c *cobra.Command) {
		note := func(f *pflag.Flag) { known[f.Name] = true }
		c.LocalFlags().VisitAll(note)
		for _, below := range c.Commands() {
			add(below)
		}
	}
	add(cmd.Root(ui.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}))
	return known
}

// checkFlag returns an error if a command does not have a flag.
func checkFlag(line, flag string) error {
	root := cmd.Root(ui.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
	c, _, err := root.Find(strings.Fields(line)[1:])
	if err != nil {
		return err
	}
	name := strings.TrimPrefix(flag, "--")
	if c.LocalFlags().Lookup(name) == nil && c.InheritedFlags().Lookup(name) == nil {
		return fmt.Errorf("%s has no flag %s", c.CommandPath(), flag)
	}
	return nil
}

// makes is the command that a missing argument of another command names: one that makes what the argument chooses from.
func makes(n ast.Node) string {
	literal, ok := n.(*ast.CompositeLit)
	if name, is := literalType(literal); !ok || !is || name != "argument" {
		return ""
	}
	fields := map[string]string{}
	for _, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			key, _ := pair.Key.(*ast.Ident)
			fields[key.Name], _ = textOf(pair.Value)
		}
	}
	if _, chooses := fields["choices"]; !chooses {
		return ""
	}
	return "fleetctl " + cmp.Or(fields["command"], fields["what"]) + " add"
}

func literalType(literal *ast.CompositeLit) (string, bool) {
	if literal == nil {
		return "", false
	}
	name, ok := literal.Type.(*ast.Ident)
	if !ok {
		return "", false
	}
	return name.Name, true
}

// textOf is the text of a literal, or of a sum with at least one literal in it; what is no literal is filled in.
func textOf(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, isLeft := textOf(e.X)
		right, isRight := textOf(e.Y)
		if e.Op != token.ADD || !isLeft && !isRight {
			return "", false
		}
		if !isLeft {
			left = filledIn
		}
		if !isRight {
			right = filledIn
		}
		return left + right, true
	}
	return "", false
}
