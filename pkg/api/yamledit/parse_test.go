package yamledit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

// The parser reports at most a line, often that of the enclosing field. People need the exact place.
func TestPlace(t *testing.T) {
	for src, want := range map[string]string{
		"metadata:\n\tname: x\n": "2:1",

		"a:\n  b: 1\n  c: \"d\n  e: f\n": "3:6", // where the quote is opened

		"a:\n  b: [x\nc: d\n": "2:7",

		"a: b: c\n": "1:5",

		"a:\n- b\n c: d\n": "3:3",

		"spec:\n  a: {}\n  b:\n  - A\n  c: {}\n    d: e\n": "6:5",

		"\u00e9: *nope\n": "1:8",

		"a: b\n@b: c\n": "2:1",

		"a: b\n---\nc: d\n\te: f\n": "4:1",
	} {
		_, err := yamledit.Parse([]byte(src))
		if err == nil {
			t.Errorf("%q is read", src)
			continue
		}
		line, column, message := yamledit.Place([]byte(src), err)
		if got := fmt.Sprintf("%d:%d", line, column); got != want || message == "" {
			t.Errorf("%q: %s (%s), want %s; the parser says: %v", src, got, message, want, err)
		}
	}
	src := []byte("a: b\n")
	if line, column, message := yamledit.Place(src, fmt.Errorf("line 7: what another reader says")); line != 7 || column != 0 ||
		message != "what another reader says" {
		t.Errorf("%d:%d %s", line, column, message)
	}
}

// An alias costs as many nodes and bytes as it expands to. A short alias of a long text can be a bomb too.
func TestAliasesCount(t *testing.T) {
	limits := yamledit.Limits{Bytes: 4000, Nodes: 1000, Depth: 10}
	long := "a: &a " + strings.Repeat("x", 1000) + "\n"
	for text, want := range map[string]bool{
		long + "b: [*a, *a]\n":                             false,
		long + "b: [*a, *a, *a, *a]\n":                     true,
		long + "b: &b [*a]\nc: &c [*b, *b]\nd: [*c, *c]\n": true,
		"&a " + strings.Repeat("x", 1000) + ": b\nc: [{*a : 1}, {*a : 1}, {*a : 1}, {*a : 1}]\n": true,
	} {
		if _, err := yamledit.ParseWithin([]byte(text), limits); yamledit.IsBeyond(err) != want {
			t.Errorf("%.20q… %q: got %v", text, text[len(text)-40:], err)
		}
	}
}
