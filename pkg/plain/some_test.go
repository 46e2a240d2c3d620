package plain

import (
	"slices"
	"testing"
)

func TestSome(t *testing.T) {
	all := []string{"a", "b", "c", "d"}
	for _, test := range []struct {
		given          []string
		most           int
		names, phrases string
	}{
		{nil, 2, "", ""},
		{all[:1], 2, "a", "a"},
		{all[:2], 2, "a, b", "a; b"},
		{all[:3], 2, "a, b and 1 more", "a; b; and 1 more"},
		{all, 1, "a and 3 more", "a; and 3 more"},
		{make([]string, 1235), 1, " and 1,234 more", "; and 1,234 more"},
	} {
		before := slices.Clone(test.given)
		if got := Names(test.given, test.most); got != test.names {
			t.Errorf("got names %q, want %q", got, test.names)
		}
		if got := Phrases(test.given, test.most); got != test.phrases {
			t.Errorf("got phrases %q, want %q", got, test.phrases)
		}
		if !slices.Equal(test.given, before) {
			t.Errorf("%q became %q", before, test.given)
		}
	}
}
