package yamledit

import "bytes"

// The limits of a text that needs no closer check. Releases have lines that begin at column 74, and documents with 62 lists and mappings in
// brackets. A text that uses both limits is still cheap to parse, encode and compare.
const (
	tameColumn   = 100
	tameBrackets = 100
)

// Tame tells whether a text is harmless to parse: it has no anchors, and is nested at most some hundred levels deep. It takes a fraction of
// the time of parsing. It returns false for many harmless texts too; ParseWithin gives the exact answer.
//
// Tame counts columns and brackets. In block style each level has its own column, except that a list may have the column of its mapping. In
// flow style each level has a bracket.
func Tame(src []byte) bool {
	if bytes.IndexByte(src, '&') >= 0 || bytes.IndexByte(src, 0) >= 0 || hasOddBreaks(src) {
		return false
	}
	return !isIndented(src) && (brackets(src) <= tameBrackets || !isBracketed(src))
}

// hasOddBreaks tells whether the text has line ends other than \n and \r\n.
func hasOddBreaks(src []byte) bool {
	for rest := src; ; {
		i := bytes.IndexByte(rest, '\r')
		if i < 0 {
			break
		}
		if rest = rest[i+1:]; len(rest) > 0 && rest[0] != '\n' {
			return true
		}
	}
	for _, ending := range []string{"\u0085", "\u2028", "\u2029"} {
		if bytes.Contains(src, []byte(ending)) {
			return true
		}
	}
	return false
}

// isIndented tells whether a line begins far to the right. The characters that can precede a nested value on the same line count as
// indentation.
func isIndented(src []byte) bool {
	for len(src) > 0 {
		at := 0
		for at < len(src) && (src[at] == ' ' || src[at] == '-' || src[at] == '?' || src[at] == ':' || src[at] == '\t') {
			at++
		}
		if at > tameColumn {
			return true
		}
		end := bytes.IndexByte(src[at:], '\n')
		if end < 0 {
			return false
		}
		src = src[at+end+1:]
	}
	return false
}

// isBracketed tells whether a document has too many brackets.
func isBracketed(src []byte) bool {
	for {
		end := bytes.Index(src, []byte("\n---"))
		if end < 0 {
			return brackets(src) > tameBrackets
		}
		if brackets(src[:end]) > tameBrackets {
			return true
		}
		src = src[end+len("\n---"):]
	}
}

// brackets counts the brackets that may begin a list or a mapping in flow style. Such a bracket follows white space, another bracket, or
// one of , : ? and -.
func brackets(src []byte) (count int) {
	for _, bracket := range []byte("[{") {
		for rest := src; ; {
			i := bytes.IndexByte(rest, bracket)
			if i < 0 {
				break
			}
			if at := len(src) - len(rest) + i; at == 0 || bytes.IndexByte([]byte(" \t\n\r[{,:?-"), src[at-1]) >= 0 {
				count++
			}
			rest = rest[i+1:]
		}
	}
	return count
}
