package yamledit

import (
	"errors"
	"strings"
	"testing"
)

func TestSetText(t *testing.T) {
	for name, tc := range map[string]struct{ src, want string }{
		"a block": {
			"a:\n  b: |\n    old\n      is: so\n\n    end\n\n  # note\n  c: 1\n", "a:\n  b: |\n    new\n\n      text\n\n  # note\n  c: 1\n",
		},
		"without its end":    {"a:\n  b: |- # why\n    old\n", "a:\n  b: |- # why\n    new\n\n      text\n"},
		"with all its lines": {"a:\n  b: |+\n      old\n\n\n  c: 1\n", "a:\n  b: |+\n      new\n\n        text\n\n\n  c: 1\n"},
		"the file ends":      {"a:\n  b: |\n    old", "a:\n  b: |\n    new\n\n      text"},
		"quoted":             {"a:\n  b: \"old\"\n", "a:\n  b: \"new\\n\\n  text\\n\"\n"},
		"a new field":        {"a:\n  c: 1\n", "a:\n  c: 1\n  b: |\n    new\n\n      text\n"},
		"folded":             {"a:\n  b: >\n    old\n    text\n", ""},
		"nothing yet":        {"a:\n  b: |\n\n  c: 1\n", ""},
		"of another indent":  {"a:\n  b: |2\n      old\n    text\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, eol := range []string{"\n", "\r\n"} {
				in := func(text string) string { return strings.ReplaceAll(text, "\n", eol) }
				got, err := SetText([]byte(in(tc.src)), 0, Path{"a", "b"}, "new\n\n  text\n")
				if tc.want == "" {
					if !errors.Is(err, ErrCannotEdit) {
						t.Errorf("got %v\n%s", err, got)
					}
					continue
				}
				if err != nil || string(got) != in(tc.want) {
					t.Errorf("got %v\n%q, want\n%q", err, got, in(tc.want))
				}
			}
		})
	}
}
