package codec

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fleetctl/fleetctl/pkg/plain"
)

// AppendYAML appends a JSON value to dst as YAML in block style, fields in the order in which they stand. It is here because the fleet's
// objects are kept as JSON, and a library would make a tree of each of them to print it, which takes some fifty times as long
// (BenchmarkWrite). src has to be valid JSON.
func AppendYAML(dst, src []byte) []byte {
	w := yamlWriter{src: string(src), dst: dst}
	w.value(0, startOfLine)
	return w.dst
}

// cursor says what stands before the value that is written next.
type cursor int

const (
	startOfLine cursor = iota // nothing: the line is still empty
	afterKey                  // "key:"
	afterDash                 // "- ", or the indentation
)

type yamlWriter struct {
	src string // of which the texts that are written are parts
	dst []byte
	at  int
	// compares says to find out whether sigs.k8s.io/yaml may have written something in another way, unlike that it may.
	compares, unlike bool
}

// PlainYAML is a JSON value as sigs.k8s.io/yaml writes it, where it is made of nothing but what everybody writes in the same way.
func PlainYAML(src []byte) (string, bool) {
	w := yamlWriter{src: string(src), compares: true}
	w.value(0, startOfLine)
	return string(w.dst), !w.unlike
}

// inOrder tells of two keys of a mapping that both sort by bytes and by what sigs.k8s.io/yaml takes for natural: they differ first in a
// letter.
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

// object writes fields, each on a line of its own at the indentation.
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

// array writes items. Below a key they stand as deep as the key itself, as kubectl has it.
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

// text writes a string: plain where nothing can take it for something else, over several lines where it has them.
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

// block writes lines as they are. The line end of the last one is left to the caller.
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

// isBlock says whether s reads the same as a literal block without an indentation indicator.
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

// isPlain says whether s is this very string when it stands without quotes, for YAML 1.1 and 1.2. When in doubt it is not.
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
		case c == '#' && (s[i-1] == ' ' || s[i-1] == '#'): // two of them may be a command to a runner of CI, see appendQuoted
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

// isNoNumber says of text that begins with a digit whether it has something that no number and no date of YAML has.
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
