package diag

import (
	"regexp"
	"strings"
)

// plainWord is what no shell takes for anything but itself.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=,@%+-]+$`)

// ShellWord is a word of a command in a hint, quoted for a shell where that is needed. A word may end in … for what the reader fills in.
func ShellWord(word string) string {
	if plainWord.MatchString(strings.TrimSuffix(word, "…")) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// ShellCommand is a command in a hint, each word quoted where that is needed.
func ShellCommand(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = ShellWord(word)
	}
	return strings.Join(quoted, " ")
}
