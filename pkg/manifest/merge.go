package manifest

import (
	"bytes"

	"github.com/aymanbagabas/go-udiff"
)

// Merge is the file base with the changes that a and b have both made to it, line by line; nil stands for no file, as base or for a side that
// has none. It is not ok where they have changed the same lines in different ways, or one has removed what the other has changed.
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
	edits, ok := udiff.Merge(udiff.Lines(text, string(a)), udiff.Lines(text, string(b)))
	if !ok {
		return nil, false
	}
	out, err := udiff.Apply(text, edits)
	return []byte(out), err == nil
}

// same tells whether two files are.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
