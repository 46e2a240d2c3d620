package gitrepo

import (
	"cmp"
	"errors"
	"strings"
)

// errNoMessage says that a commit's message is empty after its cleanup.
var errNoMessage = errors.New("the message of the commit is empty")

// cleaned returns a message after the cleanup that `git commit` makes for a message that nobody edits, by the setting commit.cleanup.
func (s settings) cleaned(message string) (string, error) {
	switch strings.ToLower(s["commit.cleanup"]) {
	case "verbatim":
		if message == "" {
			return "", errNoMessage
		}
		return message, nil
	case "strip":
		message = withoutComments(message, s.commentMark())
	}
	if message = tidied(message); message == "" {
		return "", errNoMessage
	}
	return message + "\n", nil
}

// commentMark returns the text that begins a comment line in a message.
func (s settings) commentMark() string {
	mark := cmp.Or(s["core.commentstring"], s["core.commentchar"])
	if mark == "" || strings.EqualFold(mark, "auto") {
		return "#"
	}
	return mark
}

func withoutComments(message, mark string) string {
	var kept strings.Builder
	for line := range strings.Lines(message) {
		if !strings.HasPrefix(line, mark) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// tidied returns a message without spaces at the ends of lines, without empty lines at its beginning and end, and with single empty lines.
func tidied(message string) string {
	var lines []string
	for line := range strings.Lines(message) {
		line = strings.TrimRight(line, " \t\r\n\v\f")
		if line == "" && (len(lines) == 0 || lines[len(lines)-1] == "") {
			continue
		}
		lines = append(lines, line)
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}
