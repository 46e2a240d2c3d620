package plain

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Count is a number of things, for a person to read: 1 file, 2 files, 6,229 entries. what is the singular; if it has several words, the
// last word gets the plural.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Thousands(n) + " " + Plural(what)
}

// PerKind is text such as "1 ConfigMap, 2 Roles".
func PerKind(kinds map[string]int) string {
	parts := make([]string, 0, len(kinds))
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		parts = append(parts, Count(kinds[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// Are is the verb for so many things.
func Are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// Plural is the word for several of what. A kind that has a plural for its name, such as Endpoints, keeps it.
func Plural(what string) string {
	if stem, ok := strings.CutSuffix(what, "y"); ok && !strings.HasSuffix(stem, "a") && !strings.HasSuffix(stem, "e") &&
		!strings.HasSuffix(stem, "o") {
		return stem + "ies"
	}
	if isPlural(what) {
		return what
	}
	for _, ending := range []string{"s", "x", "ch", "sh"} {
		if strings.HasSuffix(what, ending) {
			return what + "es"
		}
	}
	return what + "s"
}

// isPlural says whether what ends in an s behind a consonant other than s, as no singular does that fleetctl counts.
func isPlural(what string) bool {
	n := len(what)
	return n > 1 && what[n-1] == 's' && !strings.ContainsRune("aeiousy", rune(what[n-2]))
}

// Thousands is a number with a comma between every three digits.
func Thousands(n int) string {
	sign, digits := "", strconv.Itoa(n)
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}
