package yamledit

import (
	"strings"
	"testing"
)

// What only its author can change is named with its line, and why.
func TestAt(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"x: 1\na: &one 1\nb: *one\n": "f:2: cannot edit this file without rewriting it: the value has an anchor, which other values may use",
		"x: 1\na: !!int 1\n":         "f:2: cannot edit this file without rewriting it: the value has a tag",
		"a: |\n  1\n":                "f:1: cannot edit this file without rewriting it: the value has several lines",
		"x: 1\n\na: [1]\n":           "f:3: expected a single value, found a list",
		"x: 1\na: 1\na: 2\n":         `f:3: cannot edit this file without rewriting it: mapping key "a" already defined at line 2`,
		"x: 1\na: [\n":               "f:2: did not find expected node content",
		"":                           "f: there is no document 0",
	} {
		_, err := Set([]byte(src), 0, Path{"a"}, "3")
		if err == nil {
			t.Errorf("%q: no error", src)
			continue
		}
		if got := At("f", err) + ": " + err.Error(); got != want || strings.Contains(got, "\n") {
			t.Errorf("%q: %s, and not %s", src, got, want)
		}
	}
	if _, err := Set([]byte("b: &b {a: 1}\nc: *b\n"), 0, Path{"c", "a"}, "3"); At("f", err) != "f:2" ||
		!strings.Contains(err.Error(), "an alias of a value elsewhere") {
		t.Errorf("an alias: %s: %v", At("f", err), err)
	}
}
