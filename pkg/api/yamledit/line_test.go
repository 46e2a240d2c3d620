package yamledit

import (
	"errors"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
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

// A list with an anchor or a tag is edited where its dashes are, which is not where the parser says that it is.
func TestDecoratedList(t *testing.T) {
	t.Parallel()
	item := &yaml.Node{Kind: yaml.ScalarNode, Value: "new"}
	for src, want := range map[string]string{
		"x:\n  a: &one\n    - b: 1\n      c: 2\n    # end\ny: 1\n": "x:\n  a: &one\n    - b: 1\n      c: 2\n    - new\n    # end\ny: 1\n",
		"x:\n  a: &one\n  - 1\n  - 2\n":                            "x:\n  a: &one\n  - 1\n  - 2\n  - new\n",
		"x:\n  a: !!seq # note\n\n  # - 0\n  - 1\n":                "x:\n  a: !!seq # note\n\n  # - 0\n  - 1\n  - new\n",
		"x:\r\n  a: &e\r\n  -\r\n    b: 1\r\n":                     "x:\r\n  a: &e\r\n  -\r\n    b: 1\r\n  - new\r\n",
		"x:\n  a: &one [1]\n":                                      "x:\n  a: &one [1, new]\n",
	} {
		path := Path{"x", "a"}
		got, err := Append([]byte(src), 0, path, item)
		if err != nil || string(got) != want {
			t.Errorf("%q: %q, %v", src, got, err)
			continue
		}
		root, err := top(got, 0, path)
		if err != nil {
			t.Fatal(err)
		}
		added := append(path, len(Find(root, path...).Content)-1)
		if back, err := RemoveItem(got, 0, added); err != nil || string(back) != src {
			t.Errorf("%q and back: %q, %v", src, back, err)
		}
	}
	// What cannot be edited is named with its line of the file, and not with what the parser says of a text that nobody wrote.
	_, err := Append([]byte("y: [1,\u2028 2,\u2028 3]\na:\n- 1\nb: 1\n"), 0, Path{"a"}, item)
	if !errors.Is(err, ErrCannotEdit) || At("f", err) == "f" || !strings.HasSuffix(err.Error(), unusual) {
		t.Errorf("an unusual text: %s: %v", At("f", err), err)
	}
}
