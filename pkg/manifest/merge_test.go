package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMerge(t *testing.T) {
	const base = "one\ntwo\nthree\nfour\nfive\n"
	for name, c := range map[string]struct{ a, b, want string }{
		"far apart":        {"ONE\ntwo\nthree\nfour\nfive\n", "one\ntwo\nthree\nfour\nFIVE\n", "ONE\ntwo\nthree\nfour\nFIVE\n"},
		"the same":         {"one\nTWO\nthree\nfour\nfive\n", "one\nTWO\nthree\nfour\nfive\n", "one\nTWO\nthree\nfour\nfive\n"},
		"added and taken":  {"zero\none\ntwo\nthree\nfour\nfive\n", "one\ntwo\nfour\nfive\n", "zero\none\ntwo\nfour\nfive\n"},
		"one side alone":   {base, "one\n", "one\n"},
		"two additions":    {base + "six\n", base + "seven\n", ""},
		"side by side":     {"ONE\ntwo\nthree\nfour\nfive\n", "one\nTWO\nthree\nfour\nfive\n", ""},
		"the same line":    {"one\nTWO\nthree\nfour\nfive\n", "one\n2\nthree\nfour\nfive\n", ""},
		"taken or changed": {"one\nthree\nfour\nfive\n", "one\n2\nthree\nfour\nfive\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, sides := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
				merged, ok := Merge([]byte(base), []byte(sides[0]), []byte(sides[1]))
				if ok != (c.want != "") || ok && string(merged) != c.want {
					t.Errorf("got %q, %v", merged, ok)
				}
			}
		})
	}
}

func TestMergeOfFilesThatComeAndGo(t *testing.T) {
	one, two, empty := []byte("one\n"), []byte("two\n"), []byte{}
	for name, c := range map[string]struct {
		base, a, b, want []byte
		ok               bool
	}{
		"added by one":           {nil, one, nil, one, true},
		"added by both alike":    {nil, one, one, one, true},
		"added by both":          {nil, one, two, nil, false},
		"removed by one":         {one, nil, one, nil, true},
		"removed and changed":    {one, nil, two, nil, false},
		"emptied is not removed": {one, empty, one, empty, true},
		"removed by both":        {one, nil, nil, nil, true},
		"emptied and taken away": {one, empty, nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, sides := range [][2][]byte{{c.a, c.b}, {c.b, c.a}} {
				if merged, ok := Merge(c.base, sides[0], sides[1]); ok != c.ok || !same(merged, c.want) {
					t.Errorf("got %q (nil: %v), %v", merged, merged == nil, ok)
				}
			}
		})
	}
}

// Only the lines that both have changed are one side's; what each has changed elsewhere is there.
func TestMergeFor(t *testing.T) {
	const base, a, b = "one\ntwo\nthree\nfour\nfive\nsix\n", "zero\none\nTWO\nthree\nfour\nfive\nsix\n", "one\n2\nthree\nfour\nfive\n6\n"
	for side, want := range map[Side]string{
		SideA: "zero\none\nTWO\nthree\nfour\nfive\n6\n",
		SideB: "zero\none\n2\nthree\nfour\nfive\n6\n",
	} {
		if got := MergeFor(side, []byte(base), []byte(a), []byte(b)); string(got) != want {
			t.Errorf("side %d: got %q", side, got)
		}
	}
	if diff := cmp.Diff([]Conflict{{Line: 3, B: "2\n"}}, Conflicts([]byte(base), []byte(a), []byte(b))); diff != "" {
		t.Error(diff)
	}
	one, two := []byte("one\n"), []byte("two\n")
	if got := MergeFor(SideA, one, nil, two); got != nil {
		t.Errorf("the side that has no file: got %q", got)
	}
	if got := MergeFor(SideB, nil, one, two); string(got) != "two\n" {
		t.Errorf("added by both: got %q", got)
	}
	if found := Conflicts(nil, one, two); found != nil {
		t.Errorf("added by both: %v", found)
	}
}
