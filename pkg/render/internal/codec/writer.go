package codec

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fleetctl/fleetctl/pkg/plain"
)

// AppendYAML appends a JSON value to dst as YAML in block style, with the fields in their order. The fleet's objects are kept as JSON. A
// library would build a tree of each object to print it, which takes some fifty times as long (BenchmarkWrite). src has to be valid JSON.
func AppendYAML(dst, src []byte) []byte {
	w := yamlWriter{src: string(src), dst: dst}
	w.value(0, startOfLine)
	return w.dst
}

// cursor says what the current line has before the next value.
type cursor int

const (
	startOfLine cursor = iota // nothing: the line is still empty
	afterKey                  // "key:"
	afterDash                 // "- ", or the indentation
)

type yamlWriter struct {
	src string // the input; texts are parts of it
	dst []byte
	at  int
	// compares makes the writer set unlike if sigs.k8s.io/yaml may write any part in another way.
	compares, unlike bool
}

// PlainYAML returns a JSON value as sigs.k8s.io/yaml writes it. It returns false if it is not sure that the library writes every part in
// the same way.
func PlainYAML(src []byte) (string, bool) {
	w := yamlWriter{src: string(src), compares: true}
	w.value(0, startOfLine)
	return string(w.dst), !w.unlike
}

// inOrder tells whether two keys have the same order by bytes and in the natural order of sigs.k8s.io/yaml. That is so if the first
// difference is a letter.
func inOrder(a, b string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] < b[i] && isLetter(a[i]) && isLetter(b[i])
		}
	}
	return len(a) < len(b)
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func (w *yamlWriter) space() {
	for w.at < len(w.src) && (w.src[w.at] == ' ' || w.src[w.at] == '\n' || w.src[w.at] == '\t' || w.src[w.at] == '\r') {
		w.at++
	}
}

// next skips to the next token and returns its first byte, 0 at the end.
func (w *yamlWriter) next() byte {
	if w.space(); w.at >= len(w.src) {
		return 0
	}
	return w.src[w.at]
}

func (w *yamlWriter) indent(n int) {
	for range n {
		w.dst = append(w.dst, ' ')
	}
}

func (w *yamlWriter) value(indent int, before cursor) {
	switch w.next() {
	case '{':
		w.object(indent, before)
		return
	case '[':
		w.array(indent, before)
		return
	}
	if before == afterKey {
		w.dst = append(w.dst, ' ')
	}
	if w.next() == '"' {
		w.text(w.string(), indent)
	} else {
		start := w.at
		for w.at < len(w.src) && !endsScalar(w.src[w.at]) {
			w.at++
		}
		scalar := w.src[start:w.at]
		switch scalar {
		case "true", "false", "null":
		default:
			w.unlike = w.unlike || w.compares && !isInteger(scalar)
		}
		w.dst = append(w.dst, scalar...)
	}
	w.dst = append(w.dst, '\n')
}

func endsScalar(c byte) bool {
	switch c {
	case ',', ']', '}', ' ', '\n', '\t', '\r':
		return true
	}
	return false
}

// object writes fields, each on its own line at the indentation.
func (w *yamlWriter) object(indent int, before cursor) {
	w.at++
	if w.next() == '}' {
		w.at++
		w.empty("{}", before)
		return
	}
	if before == afterKey {
		w.dst = append(w.dst, '\n')
		indent += 2
	}
	last := ""
	for first := true; w.next() == '"'; first = false {
		if before != afterDash || !first {
			w.indent(indent)
		}
		key := w.string()
		bare := isPlain(key)
		w.unlike = w.unlike || w.compares && (!bare || len(key) > 100 || strings.Contains(key, " ") || !first && !inOrder(last, key))
		last = key
		if bare {
			w.dst = append(w.dst, key...)
		} else {
			w.dst = appendQuoted(w.dst, key)
		}
		w.dst = append(w.dst, ':')
		w.next()
		w.at++ // the colon
		w.value(indent, afterKey)
		if w.next() != ',' {
			break
		}
		w.at++
		w.next()
	}
	w.next()
	w.at++
}

// array writes items. Below a key they have the indentation of the key, as in kubectl's output.
func (w *yamlWriter) array(indent int, before cursor) {
	w.at++
	if w.next() == ']' {
		w.at++
		w.empty("[]", before)
		return
	}
	if before == afterKey {
		w.dst = append(w.dst, '\n')
	}
	for first := true; w.next() != 0; first = false {
		if before != afterDash || !first {
			w.indent(indent)
		}
		w.dst = append(w.dst, '-', ' ')
		w.value(indent+2, afterDash)
		if w.next() != ',' {
			break
		}
		w.at++
	}
	w.at++
}

func (w *yamlWriter) empty(text string, before cursor) {
	if before == afterKey {
		w.dst = append(w.dst, ' ')
	}
	w.dst = append(w.dst, text...)
	w.dst = append(w.dst, '\n')
}

// string reads a JSON string.
func (w *yamlWriter) string() string {
	start, escaped := w.at, false
	for w.at++; w.at < len(w.src) && w.src[w.at] != '"'; w.at++ {
		if w.src[w.at] == '\\' {
			escaped = true
			w.at++
		}
	}
	w.at = min(w.at+1, len(w.src))
	raw := w.src[start:w.at]
	if !escaped && len(raw) >= 2 {
		return raw[1 : len(raw)-1]
	}
	var s string
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		return raw // the input was no JSON
	}
	return s
}

// text writes a string: without quotes if it is unambiguous, as a block if it has several lines, and otherwise in quotes.
func (w *yamlWriter) text(s string, indent int) {
	bare := isPlain(s)
	w.unlike = w.unlike || w.compares && (!bare || strings.Contains(s, " "))
	switch {
	case bare:
		w.dst = append(w.dst, s...)
	case isBlock(s):
		w.block(s, indent)
	default:
		w.dst = appendQuoted(w.dst, s)
	}
}

// block writes the lines of a string. The caller ends the last line.
func (w *yamlWriter) block(s string, indent int) {
	body := strings.TrimRight(s, "\n")
	switch len(s) - len(body) {
	case 0:
		w.dst = append(w.dst, "|-"...)
	case 1:
		w.dst = append(w.dst, '|')
	default:
		w.dst = append(w.dst, "|+"...)
	}
	for line := range strings.SplitSeq(body, "\n") {
		w.dst = append(w.dst, '\n')
		if line != "" {
			w.indent(indent + 2)
			w.dst = append(w.dst, line...)
		}
	}
	for range len(s) - len(body) - 1 {
		w.dst = append(w.dst, '\n')
	}
}

// isBlock tells whether s reads the same as a literal block without an indentation indicator.
func isBlock(s string) bool {
	if !strings.Contains(s, "\n") || s[0] == ' ' || s[0] == '\t' || s[0] == '\n' || strings.Contains(s, "\n\t") {
		return false
	}
	for _, r := range s {
		if r != '\n' && r != '\t' && !isPrintable(r) {
			return false
		}
	}
	if (strings.Contains(s, "::") || strings.Contains(s, "##")) && plain.Suspicious(s) {
		return false
	}
	// A last line of spaces would be taken for the end of the block.
	return strings.TrimSpace(s[strings.LastIndexByte(strings.TrimRight(s, "\n"), '\n')+1:]) != ""
}

func isPrintable(r rune) bool {
	return r != utf8.RuneError && r != '\ufeff' && (r == ' ' || unicode.IsPrint(r))
}

// isPlain tells whether s without quotes is this string, in YAML 1.1 and 1.2. In doubt it returns false.
func isPlain(s string) bool {
	if s == "" || len(s) > 1000 {
		return false
	}
	first := s[0]
	letter := 'a' <= first && first <= 'z' || 'A' <= first && first <= 'Z' || first == '_' || first == '/'
	path := strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../")
	if !letter && !path && !('0' <= first && first <= '9' && isNoNumber(s)) {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' || c > '~':
			return false
		case c == ':' && (i+1 == len(s) || s[i+1] == ' '):
			return false
		case c == '#' && (s[i-1] == ' ' || s[i-1] == '#'): // ## may begin a command to a CI runner, see appendQuoted
			return false
		}
	}
	if s[len(s)-1] == ' ' {
		return false
	}
	if len(s) <= 5 {
		switch strings.ToLower(s) {
		case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
			return false
		}
	}
	return true
}

// isNoNumber tells whether a text that begins with a digit has a character that is in no number and no date of YAML.
func isNoNumber(s string) bool { return strings.ContainsAny(s, "ghijklmnpqrsuvwyGHIJKLMNPQRSUVWY/") }

// appendQuoted writes s in double quotes.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i, r := range s {
		switch {
		case r == '#' && i > 0 && s[i-1] == '#': // ##[command] in a log
			dst = plain.AppendEscaped(dst, r)
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r == '\t':
			dst = append(dst, '\\', 't')
		case isPrintable(r):
			dst = utf8.AppendRune(dst, r)
		default:
			dst = plain.AppendEscaped(dst, r)
		}
	}
	return append(dst, '"')
}
