package main

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// oddWords are turns of phrase that readers have to read twice, with the plain words for them. A match with a pronoun leaves
// the noun out, and the others are no terms of Kubernetes or Git.
var oddWords = []struct {
	odd   *regexp.Regexp
	plain string
}{
	{regexp.MustCompile(`(?i)\bmend(s|ed|ing)?\b`), "correct"},
	{regexp.MustCompile(`(?i)\btake (away|this out|them out|one of these out|the \w+ out|your lines out)\b`), "remove"},
	{regexp.MustCompile(`(?i)\bin the place of\b`), "instead of, or replaces"},
	{regexp.MustCompile(`(?i)\b(those|what|one|ones|everything|file|folder|host) that (is|are) there\b`), "the existing, with the noun"},
	{regexp.MustCompile(`(?i)\bwhat is there\b`), "the content of, with the noun"},
	{regexp.MustCompile(`(?i)\bis there already\b`), "exists already"},
	{regexp.MustCompile(`(?i)\bthere are left\b`), "these remain"},
	{regexp.MustCompile(`(?i)\ball the same\b`), "anyway"},
	{regexp.MustCompile(`(?i)\b(is|are) (not )?at hand\b`), "available"},
	{regexp.MustCompile(`(?i)\bto make it so\b|\bfrom its own mouth\b|\bin odd hands\b|\bfrom there to here\b`), "say it without a picture"},
}

// TestPlainWords looks for odd turns of phrase in what users read: the messages and helps of the program, and the documentation.
func TestPlainWords(t *testing.T) {
	checked := 0
	look := func(where, text string) {
		checked++
		for _, words := range oddWords {
			if found := words.odd.FindString(text); found != "" {
				t.Errorf("%s: %q: write %s", where, found, words.plain)
			}
		}
	}
	for page, text := range pagesOf(t, filepath.Join("..", "..")) {
		look(page, text)
	}
	inSources(t, []string{"cmd", "pkg"}, func(at token.Position, n ast.Node) bool {
		if text, is := n.(*ast.BasicLit); is && text.Kind == token.STRING && strings.Contains(text.Value, " ") {
			look(at.String(), text.Value)
		}
		return true
	})
	if checked < 5000 {
		t.Errorf("looked at %d texts only", checked)
	}
}
