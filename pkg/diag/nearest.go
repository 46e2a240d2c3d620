package diag

import (
	"fmt"
	"strings"
)

// Nearest returns the known name that name was most likely meant to be, or "" if no known name is close. Case, hyphens and underscores do
// not count. Of equally close names, the first wins. If no name is close, Nearest returns the only known name that begins with name.
func Nearest(name string, known []string) string {
	fold := strings.NewReplacer("-", "", "_", "")
	name = fold.Replace(strings.ToLower(name))
	if len(name) > 64 { // nobody mistypes a name into that, and the distance is quadratic
		return ""
	}
	best, bestDistance := "", max(1, len(name)/3)+1
	var begun []string
	for _, k := range known {
		folded := fold.Replace(strings.ToLower(k))
		if d := distance(name, folded); d < bestDistance && d < max(len(name), len(folded)) { // or no letter is the same
			best, bestDistance = k, d
		}
		if len(name) > 2 && strings.HasPrefix(folded, name) {
			begun = append(begun, k)
		}
	}
	if best == "" && len(begun) == 1 {
		return begun[0]
	}
	return best
}

// OneLetterOff returns the known word of which word lacks a letter, has one more or another one, or two of them swapped; "" if there is
// none.
func OneLetterOff(word string, known []string) string {
	for _, k := range known {
		if max(len(word), len(k))-min(len(word), len(k)) <= 1 && distance(word, k) == 1 {
			return k
		}
	}
	return ""
}

// distance is the number of letters to insert, delete, replace or swap with their neighbour to make b of a
// (optimal string alignment).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// mostNames is how many names a hint lists. More are for a list command.
const mostNames = 20

// Unknown is the error for a name that is not among the known names. Its hint is the nearest known name and all known names, or orElse. If
// orElse ends in "makes one", the hint has it after the known names, too.
func Unknown(what, name string, known []string, orElse string) error {
	hint := Among(name, known)
	switch {
	case hint == "":
		hint = orElse
	case Nearest(name, known) == "" && strings.HasSuffix(orElse, "makes one"):
		hint += "; " + orElse
	}
	return &Error{Err: fmt.Errorf("there is no %s %q", what, name), Hint: hint, Code: ExitUsage}
}

// Among is the hint for a name that is not among the known names: the nearest of them, and all of them unless they are many. It is "" if
// there is nothing to say.
func Among(name string, known []string) string {
	list := ""
	if len(known) > 0 && len(known) <= mostNames {
		list = "there are: " + strings.Join(known, ", ")
	}
	nearest := Nearest(name, known)
	switch {
	case nearest == "":
		return list
	case list == "" || len(known) == 1:
		return "did you mean " + nearest + "?"
	}
	return "did you mean " + nearest + "? " + strings.ToUpper(list[:1]) + list[1:]
}
