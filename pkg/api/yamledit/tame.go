package yamledit

import "bytes"

// What a text may have without being looked at closely. Releases have lines that begin at column 74, and documents with 62 lists and
// mappings in brackets; what is nested by both together is read, written and compared at no cost to speak of.
const (
	tameColumn   = 100
	tameBrackets = 100
)

// Tame tells of a text, in a fraction of the time that it takes to parse it, that no reader makes more of it than is written there: it has
// no anchors, and is nested some hundred levels deep at most. Of many texts that are harmless it cannot tell: ParseWithin can.
//
// Each level in block style stands at a column of its own, beside the list of a mapping, which may stand at the mapping's; and each in flow
// style has a bracket. So both are counted, wherever they are.
func Tame(src []byte) bool {
	if bytes.IndexByte(src, '&') >= 0 || bytes.IndexByte(src, 0) >= 0 || hasOddBreaks(src) {
		return false
	}
	return !isIndented(src) && (brackets(src) <= tameBrackets || !isBracketed(src))
}

// hasOddBreaks tells of lines that end otherwise than by \n or \r\n.
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

// isIndented tells of a line that begins far to the right. What may stand before something nested on the same line counts as its beginning.
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

// isBracketed tells of a document with many brackets.
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

// brackets counts what may begin a list or a mapping in flow style: brackets with something before them that one can stand behind.
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
