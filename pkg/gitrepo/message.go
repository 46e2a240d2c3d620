package gitrepo

import (
	"cmp"
	"errors"
	"strings"
)

// errNoMessage says that there is nothing left of a commit's message.
var errNoMessage = errors.New("the message of the commit is empty")

// cleaned is a message as git commit keeps one that nobody edits: as commit.cleanup has it.
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

// commentMark begins a line of a message that is none of it.
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

// tidied is a message without spaces at the ends of lines, and without empty lines around it or twice.
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
