package manifest

import "github.com/aymanbagabas/go-udiff"

// Merge is base with the changes that a and b have both made to it, line by line. It is not ok where they have changed the same lines in
// different ways.
func Merge(base, a, b []byte) (merged []byte, ok bool) {
	text := string(base)
	edits, ok := udiff.Merge(udiff.Lines(text, string(a)), udiff.Lines(text, string(b)))
	if !ok {
		return nil, false
	}
	out, err := udiff.Apply(text, edits)
	return []byte(out), err == nil
}
