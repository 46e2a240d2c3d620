package ui

import (
	"errors"
	"strings"
	"testing"
)

type phase string

// Named string types count as texts, and so do values that contain texts.
func TestFprintfKeepsTheLine(t *testing.T) {
	const text = "a\nb\r\tc"
	for name, tc := range map[string]struct {
		format string
		arg    any
		want   string
	}{
		"a text":            {"%s.", text, `a\nb\r\tc.`},
		"a kind of text":    {"%s.", phase(text), `a\nb\r\tc.`},
		"in a column":       {"%-12s.", phase("a\nb"), "a\\nb         ."},
		"by its value":      {"%v.", phase(text), `a\nb\r\tc.`},
		"a list":            {"%v.", []string{text, "d"}, `[a\nb\r\tc d].`},
		"a list of kinds":   {"%s.", []phase{"a\nb"}, `[a\nb].`},
		"a map":             {"%v.", map[string]int{"a\nb": 1}, `map[a\nb:1].`},
		"something in it":   {"%+v.", struct{ A phase }{"a\nb"}, `{A:a\nb}.`},
		"bytes":             {"%s.", []byte("a\nb"), `a\nb.`},
		"quoted":            {"%q.", phase("a\nb"), `"a\nb".`},
		"an error":          {"%v.", errors.New("a\nb"), `a\nb.`},
		"a number":          {"%03d.", 7, "007."},
		"a kind of number":  {"%02d.", int8(7), "07."},
		"whether it is":     {"%t.", true, "true."},
		"nothing":           {"%v.", nil, "<nil>."},
		"a number, rounded": {"%.1f.", 1.25, "1.2."},
	} {
		var out strings.Builder
		if _, err := Fprintf(&out, tc.format, tc.arg); err != nil || out.String() != tc.want {
			t.Errorf("%s: %q, %v; want %q", name, &out, err, tc.want)
		}
	}
}
