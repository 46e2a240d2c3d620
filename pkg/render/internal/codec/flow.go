package codec

import (
	"encoding/json"
	"strings"
)

// flowValue reads a value in one line: a scalar, or a list or fields in the style of JSON. It returns the value and the rest of the line,
// or nil if it is not sure. inFlow says that the value is inside another value.
func flowValue(text string, inFlow bool) (n *Node, rest string) {
	switch text[0] {
	case '[':
		return flowItems(text)
	case '{':
		return flowFields(text)
	case '"':
		return doubleQuoted(text)
	case '\'':
		end := strings.IndexByte(text[1:], '\'')
		if end < 0 || strings.HasPrefix(text[end+2:], "'") {
			return nil, ""
		}
		return &Node{scalar: Text(text[1 : end+1])}, text[end+2:]
	}
	if inFlow {
		end := strings.IndexAny(text, ",]}")
		if end < 0 {
			return nil, ""
		}
		text, rest = strings.TrimRight(text[:end], " "), text[end:]
		if strings.ContainsAny(text, "[{:\"'") {
			return nil, ""
		}
	}
	scalar := plainScalar(text)
	if scalar == "" {
		return nil, ""
	}
	return &Node{scalar: scalar}, rest
}

// plainScalar returns the JSON of a scalar without quotes, or "" if it is not sure.
func plainScalar(text string) string {
	switch text {
	case "true", "false", "null":
		return text
	case "":
		return ""
	}
	if isInteger(text) {
		return text
	}
	if isPlain(text) || isOption(text) || isAddress(text) || strings.HasSuffix(text, "%") && isInteger(text[:len(text)-1]) {
		return Text(text)
	}
	return ""
}

// isOption tells whether a text looks like -a or --all.
func isOption(text string) bool {
	name := strings.TrimPrefix(strings.TrimPrefix(text, "-"), "-")
	return name != text && name != "" && (name[0] >= 'a' && name[0] <= 'z' || name[0] >= 'A' && name[0] <= 'Z') && isPlain(name)
}

// isAddress tells whether a text is an IPv4 address, or a UUID as clouds use them. YAML takes neither for a number or a date.
func isAddress(text string) bool {
	return strings.Count(text, ".") == 3 && text[0] != '.' && strings.Trim(text, "0123456789.") == "" ||
		len(text) == 36 && strings.Count(text, "-") == 4 && text[8] == '-' && strings.Trim(text, "0123456789abcdef-") == ""
}

// isInteger tells whether a text is a decimal number in every version of YAML.
func isInteger(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || len(digits) > 15 || digits[0] == '0' && text != "0" {
		return false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return true
}

// doubleQuoted reads a string in the style of JSON. It returns nil for a string that YAML reads in another way.
func doubleQuoted(text string) (*Node, string) {
	if end := strings.IndexByte(text[1:], '"') + 2; end > 1 && isJSONText(text[1:end-1]) { // nearly all strings are
		return &Node{scalar: text[:end]}, text[end:]
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if i++; i == len(text) || !strings.ContainsRune(`"\ntu`, rune(text[i])) || text[i] == 'u' && !strings.HasPrefix(text[i:], "u00") {
				return nil, ""
			}
		case '"':
			var s string
			if err := json.Unmarshal([]byte(text[:i+1]), &s); err != nil {
				return nil, ""
			}
			return &Node{scalar: Text(s)}, text[i+1:]
		}
	}
	return nil, ""
}

// flowItems reads a list.
func flowItems(text string) (*Node, string) {
	n := &Node{kind: '['}
	text = strings.TrimLeft(text[1:], " ")
	if strings.HasPrefix(text, "]") {
		return n, text[1:]
	}
	for text != "" {
		item, rest := flowValue(text, true)
		rest = strings.TrimLeft(rest, " ")
		if item == nil || rest == "" {
			return nil, ""
		}
		n.items = append(n.items, item)
		switch rest[0] {
		case ']':
			return n, rest[1:]
		case ',':
			text = strings.TrimLeft(rest[1:], " ")
		default:
			return nil, ""
		}
	}
	return nil, ""
}

// flowFields reads fields.
func flowFields(text string) (*Node, string) {
	n := &Node{kind: '{'}
	text = strings.TrimLeft(text[1:], " ")
	if strings.HasPrefix(text, "}") {
		return n, text[1:]
	}
	for text != "" {
		name, behind, ok := splitKey([]byte(text), true)
		if !ok || len(behind) == 0 {
			return nil, ""
		}
		value, rest := flowValue(string(behind), true)
		rest = strings.TrimLeft(rest, " ")
		if value == nil || rest == "" {
			return nil, ""
		}
		n.fields = append(n.fields, field{name, value})
		if rest[0] == '}' {
			if n.sorted() == nil {
				return nil, ""
			}
			return n, rest[1:]
		}
		if rest[0] != ',' {
			return nil, ""
		}
		text = strings.TrimLeft(rest[1:], " ")
	}
	return nil, ""
}
