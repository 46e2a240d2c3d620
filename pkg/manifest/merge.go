package manifest

import (
	"bytes"
	"slices"

	"github.com/aymanbagabas/go-udiff"
)

// Merge is the file base with the changes that a and b have both made to it, line by line; nil stands for no file, as base or for a side that
// has none. It is not ok where they have changed the same lines, or lines that touch, in different ways, or one has removed what the other has
// changed: as Git has it.
func Merge(base, a, b []byte) (merged []byte, ok bool) {
	switch {
	case same(a, base) || same(a, b):
		return b, true
	case same(b, base):
		return a, true
	case base == nil || a == nil || b == nil:
		return nil, false
	}
	text := string(base)
	ours, theirs := udiff.Lines(text, string(a)), udiff.Lines(text, string(b))
	if touching(ours, theirs) {
		return nil, false // two additions at one place would come one behind the other, in whatever order
	}
	edits, ok := udiff.Merge(ours, theirs)
	if !ok {
		return nil, false
	}
	out, err := udiff.Apply(text, edits)
	return []byte(out), err == nil
}

// touching tells whether two sides change the same lines, or lines side by side, in different ways.
func touching(ours, theirs []udiff.Edit) bool {
	return slices.ContainsFunc(ours, func(a udiff.Edit) bool {
		return slices.ContainsFunc(theirs, func(b udiff.Edit) bool { return a != b && a.Start <= b.End && b.Start <= a.End })
	})
}

// same tells whether two files are.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
