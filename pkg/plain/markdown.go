package plain

import (
	"regexp"
	"strings"
)

// Markdown is s on one line of a comment at a forge. Plain words stay words. Text with anything in it of which a forge could make a link, a
// picture, HTML, a mention, a reference or an emoji becomes code, in which none of them works: forges look for mentions and references
// after HTML's entities are decoded, so writing those would not do.
//
// In a table, each | of the result has to be written \|.
func Markdown(s string) string {
	s = Line(s)
	if !meaning.MatchString(merged.ReplaceAllString(s, "")) {
		return s
	}
	fence, pad := fence(s, 1), ""
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") || strings.HasPrefix(s, " ") && strings.HasSuffix(s, " ") {
		pad = " " // Markdown takes one space off each side
	}
	return fence + pad + s + pad + fence
}

// meaning is what means something in the Markdown of GitHub, GitLab or Gitea, or in HTML, within a line or where one begins; a single
// character that stands alone between words does not.
var meaning = regexp.MustCompile("[`*_\\[\\]<>\\\\|~@#$^&{}!]|:[^ ]|%[^ ,;.)]|(?i:www\\.|\\bgh-[0-9])|^[ \t]*([-+=]|[0-9]+[.)])")

// merged is what forges end the subject of a merged pull request with: its number in the same repository.
var merged = regexp.MustCompile(` \(#[0-9]+\)$`)

// Fenced is text as a block of code of a comment at a forge, highlighted as the language says. No line of the text ends the block.
func Fenced(language, text string) string {
	text = Lines(text)
	fence := fence(text, 3)
	return fence + language + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence + "\n"
}

// fence is longer than any run of backticks in the text, and no shorter than least.
func fence(text string, least int) string {
	run := 0
	for i := range len(text) {
		if text[i] != '`' {
			run = 0
			continue
		}
		run++
		least = max(least, run+1)
	}
	return strings.Repeat("`", least)
}
