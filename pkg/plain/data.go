package plain

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// JSON returns the JSON document src with all Hidden characters as escapes, and without commands of a CI runner. The meaning stays the
// same, because such characters appear only in strings. Line ends and tabs stay, because in JSON they appear only between values. U+FFFE
// and U+FFFF become escapes, too: no YAML may have them.
func JSON(src []byte) []byte {
	if !suspect(src) {
		return src
	}
	out := make([]byte, 0, len(src)+64)
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRune(src[i:])
		switch {
		case r == '#' && i+1 < len(src) && src[i+1] == '#':
			out = append(out, `\u0023`...)
		case r == '\n' || r == '\t' || r == '\r' || !Hidden(r) && r != 0xFFFE && r != 0xFFFF:
			out = append(out, src[i:i+size]...)
		default:
			for _, unit := range utf16.AppendRune(nil, r) {
				out = append(out, '\\', 'u')
				out = append(out, AppendEscaped(nil, 0x10000|rune(unit))[len(`\U0001`):]...)
			}
		}
		i += size
	}
	return out
}

// suspect says whether text may contain something that a reader must not get unescaped. It is a fast check, which may also be true for
// harmless text.
func suspect(text []byte) bool { return suspectAt(text) >= 0 }

// suspectAt is where suspect finds something first, or -1.
func suspectAt(text []byte) int {
	var last byte
	for i, c := range text {
		switch {
		case c == '#' || c == ':':
			if c == last {
				return i
			}
		case c < ' ' && c != '\n' && c != '\t', c > '~':
			return i
		}
		last = c
	}
	return -1
}

// YAML is the YAML document src with all that is Hidden written as escapes, and with nothing that a runner of CI takes for a command. It
// means the same; what must be escaped stands in double quotes afterwards.
func YAML(src []byte) ([]byte, error) {
	if !suspect(src) {
		return src, nil
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(src, &doc); err != nil {
		return nil, err
	}
	if !quote(&doc) {
		return src, nil
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	if err := enc.Encode(&doc); err != nil {
		return nil, err
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	out := make([]byte, 0, b.Len()+64)
	for i, text := 0, b.Bytes(); i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case r == '#' && i+1 < len(text) && text[i+1] == '#':
			out = append(out, `\x23`...)
		case r != '\n' && r != '\t' && Hidden(r):
			out = AppendEscaped(out, r)
		default:
			out = append(out, text[i:i+size]...)
		}
		i += size
	}
	return out, nil
}

// quote puts scalars with suspicious text in double quotes, and says whether there were any.
func quote(n *yaml.Node) bool {
	found := n.Kind == yaml.ScalarNode && Suspicious(n.Value)
	if found || n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "##") { // the second because YAML escapes wherever it stands
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, each := range n.Content {
		found = quote(each) || found
	}
	return found
}
