// Package plain makes text that somebody else chose safe to show. Names in a fleet repo, messages of a cluster and titles at a forge
// reach terminals, the logs of CI and comments on pull requests: places where a few characters move the cursor, hide what follows,
// turn text around, run a command of the runner or load a picture.
//
// What is not shown as it is, is shown as Go writes it in a string: \x1b, \u202e. Nothing is left out, but for the end of a name or message
// that has more than MaxText bytes.
package plain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Hidden says whether r must not reach a reader unescaped. These are control characters (C0, DEL and C1; line ends and tabs too), the marks
// of bidirectional text, other characters without a shape (Unicode's format characters, fillers, variation selectors), and line and
// paragraph separators. The two joiners that scripts and emoji are written with are text, and so is the selector of an emoji's colours.
func Hidden(r rune) bool {
	switch {
	case r >= ' ' && r <= '~':
		return false
	case r < ' ' || r <= 0x9f, r == utf8.RuneError, r == '\u2028', r == '\u2029':
		return true
	case r == '\u200c' || r == '\u200d' || r == '\ufe0f':
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point) || r >= '\ufe00' && unicode.Is(unicode.Variation_Selector, r)
}

// AppendEscaped appends r as Go, YAML in double quotes and, for most, JSON write it.
func AppendEscaped(dst []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	switch r {
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	prefix, width := byte('x'), 2
	switch {
	case r >= 0x10000:
		prefix, width = 'U', 8
	case r >= 0x100:
		prefix, width = 'u', 4
	}
	dst = append(dst, '\\', prefix)
	for i := width - 1; i >= 0; i-- {
		dst = append(dst, digits[r>>(4*i)&15])
	}
	return dst
}

// Line is s on one line: all that is Hidden is escaped, line ends and tabs included. A byte that is no UTF-8 becomes \x and its value.
func Line(s string) string {
	at := indexHidden(s)
	if at < 0 {
		return s
	}
	out := append(make([]byte, 0, len(s)+16), s[:at]...)
	for i := at; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			out = AppendEscaped(out, rune(s[i]))
		case Hidden(r):
			out = AppendEscaped(out, r)
		default:
			out = append(out, s[i:i+size]...)
		}
		i += size
	}
	return string(out)
}

// indexHidden is where the first character stands that must be escaped, or -1.
func indexHidden(s string) int {
	for i, r := range s {
		if Hidden(r) {
			return i
		}
	}
	return -1
}

// Lines is s with each of its lines made safe as Line does it; tabs and line ends stay, \r\n among them.
func Lines(s string) string {
	if indexHidden(s) < 0 {
		return s
	}
	var b strings.Builder
	for line := range strings.Lines(s) {
		text := strings.TrimSuffix(line, "\n")
		end := line[len(text):]
		if end != "" && strings.HasSuffix(text, "\r") {
			text, end = text[:len(text)-1], "\r\n"
		}
		for i, part := range strings.Split(text, "\t") {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(Line(part))
		}
		b.WriteString(end)
	}
	return b.String()
}

// MaxText bounds a name or a message within a line for a person, in bytes. A condition of an object in a cluster may have a megabyte, and
// so may the version that an API server says it has. What programs read (JSON, YAML) has all of it.
const MaxText = 16 << 10

// Unbroken is s with its line ends and tabs escaped, and without what is beyond MaxText: for names and messages that are put into a line,
// or into a column, of text on its way to a Guard.
func Unbroken(s string) string {
	if len(s) > MaxText {
		painted := strings.Contains(s, mark())
		if s = Clip(s, MaxText); painted {
			s += Reset.String() // its own may have been cut off
		}
	}
	if !strings.ContainsFunc(s, breaks) {
		return s
	}
	out := make([]byte, 0, len(s)+16)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if breaks(r) {
			out = AppendEscaped(out, r)
		} else {
			out = append(out, s[i:i+size]...)
		}
		i += size
	}
	return string(out)
}

// breaks says whether r ends a line or a column somewhere: in terminals, in Markdown, in tables made with text/tabwriter.
func breaks(r rune) bool {
	return '\t' <= r && r <= '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

// Indented is text whose lines after the first are indented by two columns, so that none of them looks like a separate message.
func Indented(text string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
}
