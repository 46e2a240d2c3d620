package codec

import "bytes"

// SkipJSON returns the index after the value at an index of src, or -1 if the value is cut short. src is valid JSON without spaces between
// its parts, as encoding/json writes it.
func SkipJSON(src []byte, at int) int {
	depth := 0
	for at < len(src) {
		switch src[at] {
		case '"':
			for at++; at < len(src) && src[at] != '"'; at++ {
				if src[at] == '\\' {
					at++
				}
			}
			at++
		case '{', '[':
			depth++
			at++
		case '}', ']':
			if depth == 0 {
				return at
			}
			depth--
			at++
		case ',', ':':
			if depth == 0 {
				return at
			}
			at++
		default:
			at++
		}
		if depth == 0 && at < len(src) && (src[at] == ',' || src[at] == '}' || src[at] == ']' || src[at] == ':') {
			return at
		}
	}
	if depth > 0 || at > len(src) {
		return -1
	}
	return at
}

// SpotOf finds a field of the object that begins at an index. value is the index of its value. If the field is missing, place is the index
// at which it has to be inserted to keep the order of the names. ok is false if there is no object at the index.
func SpotOf(src []byte, at int, name string) (value, place int, ok bool) {
	if at >= len(src) || src[at] != '{' {
		return 0, 0, false
	}
	for at++; at < len(src) && src[at] == '"'; at++ {
		colon := SkipJSON(src, at)
		if colon < 0 || colon >= len(src) || src[colon] != ':' {
			return 0, 0, false
		}
		there := src[at+1 : colon-1]
		if bytes.IndexByte(there, '\\') >= 0 {
			return 0, 0, false
		}
		switch bytes.Compare(there, []byte(name)) {
		case 0:
			return colon + 1, 0, true
		case 1:
			return 0, at, true
		}
		if at = SkipJSON(src, colon+1); at < 0 || at >= len(src) {
			return 0, 0, false
		}
		if src[at] == '}' {
			return 0, at, true
		}
	}
	return 0, at, true
}
