package validate

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// unnamed returns a text without the object's names, so that texts about several objects can be compared.
func (o *object) unnamed(text string) string {
	for _, name := range []string{o.Namespace, o.Name} {
		if name != "" {
			text = replaceWord(text, name)
		}
	}
	return text
}

// replaceWord replaces a word of a text with ….
func replaceWord(text, word string) string {
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, word)
		if !found {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(before)
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(after)
		if before != "" && inWord(last) || after != "" && inWord(next) {
			b.WriteString(word)
		} else {
			b.WriteString("…")
		}
		text = after
	}
}
