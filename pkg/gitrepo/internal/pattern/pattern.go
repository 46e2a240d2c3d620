// Package pattern matches texts against patterns as git does.
package pattern

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Match tells whether a text matches a pattern of git: * and ? stop at slashes, ** does not. An invalid pattern matches nothing.
func Match(pattern, text string, anyCase bool) bool {
	flags := "(?s)"
	if anyCase {
		flags = "(?si)"
	}
	compiled, err := regexp.Compile(flags + "^(?:" + expression(pattern) + ")$")
	return err == nil && compiled.MatchString(text)
}

// expression returns a pattern as a regular expression.
func expression(pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); {
		rest := pattern[i:]
		begins := i == 0 || pattern[i-1] == '/'
		switch {
		case begins && strings.HasPrefix(rest, "**/"):
			b.WriteString("(?:.*/)?")
			i += 3
		case begins && rest == "**":
			b.WriteString(".*")
			i += 2
		case rest[0] == '*':
			b.WriteString("[^/]*")
			i++
		case rest[0] == '?':
			b.WriteString("[^/]")
			i++
		case rest[0] == '[':
			set, n := class(rest)
			b.WriteString(set)
			i += n
		case rest[0] == '\\' && len(rest) > 1:
			b.WriteString(regexp.QuoteMeta(rest[1:2]))
			i += 2
		default:
			_, size := utf8.DecodeRuneInString(rest)
			b.WriteString(regexp.QuoteMeta(rest[:size]))
			i += size
		}
	}
	return b.String()
}

// class returns the character class at the beginning of a pattern as a regular expression, and its length in the pattern.
func class(pattern string) (string, int) {
	i, not := 1, false
	if i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^') {
		i, not = i+1, true
	}
	var b strings.Builder
	for start := i; i < len(pattern); {
		switch {
		case pattern[i] == ']' && i > start:
			if not {
				return "[^/" + b.String() + "]", i + 1
			}
			return "[" + b.String() + "]", i + 1
		case strings.HasPrefix(pattern[i:], "[:"):
			end := strings.Index(pattern[i:], ":]")
			if end < 0 {
				return `\[`, 1
			}
			b.WriteString(pattern[i : i+end+2])
			i += end + 2
		case pattern[i] == '\\' && i+1 < len(pattern):
			b.WriteString(quoteInClass(pattern[i+1]))
			i += 2
		case pattern[i] == '-' && i > start && i+1 < len(pattern) && pattern[i+1] != ']':
			b.WriteByte('-')
			i++
		case pattern[i] < utf8.RuneSelf:
			b.WriteString(quoteInClass(pattern[i]))
			i++
		default:
			_, size := utf8.DecodeRuneInString(pattern[i:])
			b.WriteString(pattern[i : i+size])
			i += size
		}
	}
	return `\[`, 1 // never closed
}

func quoteInClass(c byte) string {
	if strings.IndexByte(`\]^[-&~`, c) >= 0 {
		return `\` + string(c)
	}
	return string(rune(c))
}
