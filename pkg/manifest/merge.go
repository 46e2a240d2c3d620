package manifest

import (
	"bytes"
	"slices"

	"github.com/aymanbagabas/go-udiff"
)

// Merge is the file base with the changes of both a and b, line by line; nil stands for a missing file. ok is false if both have changed
// the same or adjacent lines in different ways, or if one side has removed the file that the other side has changed, as in Git.
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

// Side is one of the two that Merge brings together.
type Side int

// The sides, in the order of Merge's arguments.
const (
	SideA Side = iota
	SideB
)

// MergeFor is like Merge, but resolves conflicts in favour of one side: its lines win where both have changed the same lines, and its file
// wins where one side has removed the file. nil stands for a missing file. All other changes of both are in the result.
func MergeFor(side Side, base, a, b []byte) []byte {
	if merged, ok := Merge(base, a, b); ok {
		return merged
	}
	preferred, other := a, b
	if side == SideB {
		preferred, other = b, a
	}
	if base == nil || a == nil || b == nil {
		return preferred
	}
	text := string(base)
	kept, rest := udiff.Lines(text, string(preferred)), udiff.Lines(text, string(other))
	rest = slices.DeleteFunc(rest, func(edit udiff.Edit) bool { return touching(kept, []udiff.Edit{edit}) })
	edits, ok := udiff.Merge(kept, rest)
	if !ok {
		return preferred
	}
	out, err := udiff.Apply(text, edits)
	if err != nil {
		return preferred
	}
	return []byte(out)
}

// Conflict is a place where two sides have changed the same lines of a file.
type Conflict struct {
	// Line of the file of side A where its change begins, from 1.
	Line int
	// B are the lines of side B at this place, "" if it has removed them.
	B string
}

// Conflicts are the places for which Merge is not ok, in the order of the file. If a file is missing, Conflicts returns none.
func Conflicts(base, a, b []byte) []Conflict {
	if base == nil || a == nil || b == nil {
		return nil
	}
	text := string(base)
	theirs := udiff.Lines(text, string(b))
	var found []Conflict
	moved := 0 // by so many bytes side A's edits so far have moved the rest
	for _, edit := range udiff.Lines(text, string(a)) {
		if i := slices.IndexFunc(theirs, func(other udiff.Edit) bool { return touching([]udiff.Edit{edit}, []udiff.Edit{other}) }); i >= 0 {
			found = append(found, Conflict{Line: 1 + bytes.Count(a[:edit.Start+moved], []byte("\n")), B: theirs[i].New})
		}
		moved += len(edit.New) - (edit.End - edit.Start)
	}
	return found
}

// touching tells whether two sides change the same lines, or lines side by side, in different ways.
func touching(ours, theirs []udiff.Edit) bool {
	return slices.ContainsFunc(ours, func(a udiff.Edit) bool {
		return slices.ContainsFunc(theirs, func(b udiff.Edit) bool { return a != b && a.Start <= b.End && b.Start <= a.End })
	})
}

// same tells whether two files are.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
