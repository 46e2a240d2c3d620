package plain

import (
	"fmt"
	"slices"
	"strings"
)

// Names lists the first names for a person to read, and says how many more there are: "a, b and 3 more".
func Names(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %s more", strings.Join(names[:most], ", "), Thousands(len(names)-most))
}

// Phrases is Names for texts that may have commas of their own: "a, b; c; and 3 more".
func Phrases(phrases []string, most int) string {
	if len(phrases) > most {
		phrases = append(slices.Clone(phrases[:most]), fmt.Sprintf("and %s more", Thousands(len(phrases)-most)))
	}
	return strings.Join(phrases, "; ")
}
