package v1alpha1

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// leavesOutSlowly does the same as leavesOut, by trying every possibility.
func leavesOutSlowly(pattern, steps []string) bool {
	switch {
	case len(pattern) == 0:
		return true
	case len(steps) == 0:
		return false
	case pattern[0] == "**":
		return slices.ContainsFunc(suffixes(steps), func(rest []string) bool { return leavesOutSlowly(pattern[1:], rest) })
	}
	matches, _ := path.Match(pattern[0], steps[0])
	return matches && leavesOutSlowly(pattern[1:], steps[1:])
}

func suffixes(steps []string) (out [][]string) {
	for i := range steps {
		out = append(out, steps[i:])
	}
	return out
}

// lists returns all lists of at most this many words.
func lists(words []string, most int) [][]string {
	out := [][]string{{}}
	for from, length := 0, 0; length < most; length++ {
		to := len(out)
		for _, list := range out[from:to] {
			for _, word := range words {
				out = append(out, append(slices.Clip(list), word))
			}
		}
		from = to
	}
	return out
}

// For every short pattern and every short path, leavesOut agrees with leavesOutSlowly.
func TestExcludedPaths(t *testing.T) {
	paths := lists([]string{"a", "b", "ab"}, 5)
	for _, pattern := range lists([]string{"a", "b", "**", "a*"}, 4) {
		for _, steps := range paths {
			if got, want := leavesOut(pattern, steps), leavesOutSlowly(pattern, steps); got != want {
				t.Fatalf("%v of %v: %v, want %v", pattern, steps, got, want)
			}
		}
	}
}

// A pattern with many ** takes at most as many steps as the product of the lengths of pattern and path.
func TestExcludedPathsInTime(t *testing.T) {
	pattern := strings.Split(strings.Repeat("**/a*/", 40)+"b", "/")
	deep := slices.Repeat([]string{"a"}, 2000)
	if leavesOut(pattern, deep) {
		t.Error("it has no b")
	}
	if !leavesOut(pattern, append(deep, "b", "c")) {
		t.Error("it has a b")
	}
}

// The length of spec.validate is limited.
func TestExcludeBounds(t *testing.T) {
	long := strings.Repeat("a/", 127) + "aa"
	for name, tt := range map[string]struct {
		settings Validation
		at       string
	}{
		"as long as it may be": {Validation{Exclude: []string{long}}, ""},
		"too long":             {Validation{Exclude: []string{"b", long + "a"}}, "spec.validate.exclude[1]"},
		"as many as may be":    {Validation{Exclude: slices.Repeat([]string{"a"}, 100), CRDs: slices.Repeat([]string{"a"}, 100)}, ""},
		"too many":             {Validation{Exclude: slices.Repeat([]string{"a"}, 101)}, "spec.validate.exclude"},
		"too many CRDs":        {Validation{CRDs: slices.Repeat([]string{"a"}, 101)}, "spec.validate.crds"},
	} {
		v := &validator{broken: func(string) bool { return false }}
		v.validation(tt.settings)
		got := ""
		for _, f := range v.findings {
			got += fmt.Sprint(f)
		}
		if tt.at == "" && got != "" || !strings.Contains(got, tt.at) || tt.at != "" && got == "" {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
