package main

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	// numberAndNoun is a number in a format with a noun in the plural behind it, or with a noun that comes as an argument.
	numberAndNoun = regexp.MustCompile(`%(?:\[\d+\])?d (?:(?:more|other|new|management|workload) )?([A-Za-z]+s|%s)\b`)
	// numbered are words behind the number of one thing: item 3 comes before, port 80 is taken.
	numbered = regexp.MustCompile(`^(is|was|has|does|runs|comes|names|its|this)$`)
	// bound is what stands before a limit, and beyond what stands behind a number that is larger than a limit. No limit is 1.
	bound  = regexp.MustCompile(`(?:than|after|most|least|1 to|up to) $`)
	beyond = regexp.MustCompile(`^,? (?:(?:and|but) [^,]*(?:takes|at most|%d are)|at most|more than)`)
	limits = regexp.MustCompile(`^(?i:max|most|longest|least|limit|attempts)`)
	// pluralVerb begins with a verb in the plural.
	pluralVerb = regexp.MustCompile(`^ (?:(?:also|now|still) )?(?:answer|are|begin|belong|come|cost|differ|do|end|fail|follow|go|have|keep|lack|` +
		`live|make|need|remain|run|stand|stay|use|wait|were)\b`)
	// answers are the codes of HTTP, and times, with their texts behind them.
	answers = regexp.MustCompile(`(?:answers?|answer is|[@:>]) ?$`)
)

// severalAlways are further texts whose number is never 1, each with the reason.
var severalAlways = map[string]string{
	"nodes in %d zones":                   "a single zone can share any number of nodes",
	"notifications have %d and %d bytes":  "sizes of structs",
	"%d objects, from %s on":              "the name of a part of the work, which is tried again one by one before anybody reads of it",
	"the pattern has %d wildcards behind": "few wildcards take no time",
}

// TestCountsAgree finds formats such as "%d clusters", which say "1 clusters" one day, and those that print plain.Count before a verb in
// the plural. plain.Count and plain.Are agree with the number.
func TestCountsAgree(t *testing.T) {
	formats, known := 0, map[string]bool{}
	inSources(t, []string{"cmd", "pkg"}, func(at token.Position, n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is || strings.HasSuffix(filepath.Dir(at.Filename), "test") { // what tests say, developers read
			return true
		}
		for i, argument := range call.Args {
			format := literal(argument)
			if text := countBeforePlural(format, call.Args[i+1:]); text != "" {
				t.Errorf("%s: %q: for 1 the verb is another: write it with plain.Are, or put the number behind it", at, text)
			}
			if !strings.Contains(format, "%d") {
				continue
			}
			formats++
			for _, found := range numberAndNoun.FindAllStringSubmatchIndex(format, -1) {
				word := format[found[2]:found[3]]
				if numbered.MatchString(word) || bound.MatchString(format[:found[0]]) || beyond.MatchString(format[found[1]:]) ||
					word == "%s" && answers.MatchString(format[:found[0]]) || limits.MatchString(numberOf(call.Args[i+1:], format[:found[0]])) ||
					exempt(format, known) {
					continue
				}
				t.Errorf("%s: %q: write the number and the noun with plain.Count, and the verb with plain.Are", at, format[found[0]:found[1]])
			}
		}
		return true
	})
	if formats < 200 {
		t.Errorf("looked at %d formats only", formats)
	}
	for text := range severalAlways {
		if !known[text] {
			t.Errorf("no format has %q any more: remove it from severalAlways", text)
		}
	}
}

// countBeforePlural is what stands behind a %s of the format that prints plain.Count, if it begins with a verb in the plural.
func countBeforePlural(format string, arguments []ast.Expr) string {
	for at := range format {
		ofThem := strings.HasSuffix(format[:at], " of ") // the verb is that of what goes before
		if ofThem || !strings.HasPrefix(format[at:], "%s") || !pluralVerb.MatchString(format[at+2:]) {
			continue
		}
		count, is := argumentOf(arguments, format[:at]).(*ast.CallExpr)
		if !is {
			continue
		}
		if called, is := count.Fun.(*ast.SelectorExpr); is && called.Sel.Name == "Count" {
			return format[at:]
		}
	}
	return ""
}

// exempt says whether the format has a text of severalAlways, and remembers the text.
func exempt(format string, known map[string]bool) bool {
	for text := range severalAlways {
		if strings.Contains(format, text) {
			known[text] = true
			return true
		}
	}
	return false
}

// literal is the text of an expression of string literals, or "".
func literal(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.BasicLit:
		if x.Kind == token.STRING {
			text, _ := strconv.Unquote(x.Value)
			return text
		}
	case *ast.BinaryExpr:
		return literal(x.X) + literal(x.Y)
	}
	return ""
}

// numberOf is the name of the argument that a format prints behind its beginning, without the package or the struct that has it. It is ""
// for an argument without a name, such as a call.
func numberOf(arguments []ast.Expr, beginning string) string {
	switch x := argumentOf(arguments, beginning).(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}

// argumentOf is the argument that a format prints behind its beginning; nil if there is none.
func argumentOf(arguments []ast.Expr, beginning string) ast.Expr {
	n := strings.Count(strings.ReplaceAll(beginning, "%%", ""), "%")
	if n >= len(arguments) {
		return nil
	}
	return arguments[n]
}
