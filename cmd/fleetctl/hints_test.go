package main

import (
	"cmp"
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// inText finds the commands in what the program says: between backquotes, or a text that is one, as a next step is.
var inText = regexp.MustCompile("`(fleetctl [^`\n]*)`|^(fleetctl [a-z][^`\n]*)$")

// verb is a place that fmt fills in.
var verb = regexp.MustCompile(`%(\[\d\])?[sdvq]`)

// sentence begins with the program, and is no command.
var sentence = regexp.MustCompile(`^fleetctl (has|does|brings|git server|init installs) ?`)

// filledIn stands for what is known only when the program runs. As a value it has to be of a kind that most flags take.
const filledIn = "1"

// TestCommandsInHints holds every command that a hint, a note, a next step or a help text names against the real ones: whoever reads one
// types it.
func TestCommandsInHints(t *testing.T) {
	checked := 0
	inSources(t, []string{"pkg"}, func(at token.Position, n ast.Node) bool {
		if made := makes(n); made != "" {
			checked++
			if err := checkCommand(made); err != nil {
				t.Errorf("%s: %q: %v", at, made, err)
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
		return false
	})
	if checked < 300 {
		t.Errorf("found only %d commands", checked)
	}
	t.Logf("%d commands", checked)
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
