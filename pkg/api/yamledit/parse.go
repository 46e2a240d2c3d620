package yamledit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// The limits of a file that people edit. Real files are far below them. They keep a hostile file from exhausting the machine's memory.
const (
	// MaxBytes is the maximum size of a file in bytes.
	MaxBytes = 512 << 10
	maxNodes = 50_000
	maxDepth = 64
)

// Limits bound a YAML file.
type Limits struct {
	// Bytes is the maximum size of the file, and also of all its scalars once aliases are expanded.
	Bytes int
	// Nodes is the maximum number of nodes once aliases are expanded.
	Nodes int
	// Depth is the maximum depth of nested nodes.
	Depth int
}

// ReadLimits are the limits of a YAML file that fleetctl only reads. Flux's components are the largest file of a fleet repo: some 700 KiB.
var ReadLimits = Limits{Bytes: 8 << 20, Nodes: 500_000, Depth: 100}

// ErrExpands says that a file is too large or too deep once its aliases are expanded.
var ErrExpands = errors.New("file is too large or too deep once its aliases are expanded: write it out without aliases (*name)")

// ErrDeep says that a file is nested too deep even without its aliases.
var ErrDeep = errors.New("it is nested too deep: no object that people write is")

// IsBeyond tells whether an error of ParseWithin is ErrExpands or ErrDeep: the text is YAML, but beyond the limits.
func IsBeyond(err error) bool { return errors.Is(err, ErrExpands) || errors.Is(err, ErrDeep) }

// Parse is ParseWithin with the limits of a file that people edit.
func Parse(src []byte) ([]*yaml.Node, error) {
	return ParseWithin(src, Limits{Bytes: MaxBytes, Nodes: maxNodes, Depth: maxDepth})
}

// ParseWithin returns the top node of each document in src. The error is ErrExpands, ErrDeep (with the line), an error of the YAML parser,
// or says that src is too large or not UTF-8 text.
func ParseWithin(src []byte, limits Limits) ([]*yaml.Node, error) {
	if len(src) > limits.Bytes {
		return nil, fmt.Errorf("file is larger than %d KiB", limits.Bytes>>10)
	}
	if !utf8.Valid(src) {
		return nil, errors.New("file is not UTF-8 text")
	}
	var documents []*yaml.Node
	m := meter{budget: limits.Nodes, bytes: limits.Bytes}
	for decoder := yaml.NewDecoder(bytes.NewReader(src)); ; {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, err
		}
		if err := m.spend(document.Content[0], limits.Depth, false); err != nil {
			return nil, err
		}
		documents = append(documents, document.Content[0])
	}
}

// meter measures the size of documents with their aliases expanded.
type meter struct{ budget, bytes int }

// spend subtracts the expanded size of n from the budget. It returns ErrExpands or ErrDeep if the budget or the remaining depth is too
// small. The depth also ends an alias inside of its own anchor.
func (m *meter) spend(n *yaml.Node, depth int, aliased bool) error {
	for n.Kind == yaml.AliasNode {
		n, aliased = n.Alias, true
	}
	m.budget--
	m.bytes -= len(n.Value)
	if m.budget < 0 || m.bytes < 0 || depth < 0 && aliased {
		return ErrExpands
	}
	if depth < 0 {
		return fmt.Errorf("line %d: %w", n.Line, ErrDeep)
	}
	for _, inner := range n.Content {
		if err := m.spend(inner, depth-1, aliased); err != nil {
			return err
		}
	}
	return nil
}

// yamlLine finds the line in a message of the YAML parser. The parser's errors have no field for it.
var yamlLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:yaml: )?(?:unmarshal errors:\s+)?line (\d+): `) })

// Line splits an error of a YAML parser into its line and the rest of its message. The line is 0 if the error has none.
func Line(err error) (line int, message string) {
	message = err.Error()
	if m := yamlLine().FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1]) // the pattern matches digits only; an overflow gives no worse a line than 0
		message = message[len(m[0]):]
	}
	return line, strings.TrimPrefix(message, "yaml: ")
}

// maxPlaced is the maximum size of a file that Place parses again to find the column.
const maxPlaced = 1 << 20

// Place returns the line, column and message of an error that the YAML parser returned for src. Both places are 0 if they are not known.
// The parser's own line is often the line of the enclosing field. Place finds the exact position by binary search: the parser reads from
// the beginning, so the mistake is at the end of the shortest part of src with the same error.
func Place(src []byte, err error) (line, column int, message string) {
	line, message = Line(err)
	if len(src) > maxPlaced {
		return line, 0, message
	}
	fails := func(n int) bool {
		decoder := yaml.NewDecoder(bytes.NewReader(src[:n]))
		for {
			var document yaml.Node
			switch again := decoder.Decode(&document); {
			case errors.Is(again, io.EOF):
				return false
			case again != nil:
				return again.Error() == err.Error()
			}
		}
	}
	if !fails(len(src)) { // the error comes from another reader
		return line, 0, message
	}
	end := 1 + sort.Search(len(src)-1, func(n int) bool { return fails(n + 1) })
	before := src[:end-1]
	return 1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]), message
}

// Lookup returns the value of a field of a mapping, or nil if n is not a mapping or lacks the field. It follows aliases.
func Lookup(n *yaml.Node, field string) *yaml.Node {
	n = Resolve(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == field {
			return Resolve(n.Content[i+1])
		}
	}
	return nil
}

// Find returns the node at path below n, or nil. It follows aliases.
func Find(n *yaml.Node, path ...any) *yaml.Node {
	for _, s := range path {
		if n = Resolve(n); n == nil {
			return nil
		}
		switch s := s.(type) {
		case string:
			n = Lookup(n, s)
		case int:
			if n.Kind != yaml.SequenceNode || s >= len(n.Content) {
				return nil
			}
			n = n.Content[s]
		}
	}
	return Resolve(n)
}

// Nearest returns the node at path below n, or the last existing node on the way. A message about path can point at it.
func Nearest(n *yaml.Node, path ...any) *yaml.Node {
	for i := range path {
		next := Find(n, path[i])
		if next == nil {
			break
		}
		n = next
	}
	return n
}

// Resolve returns the node that an alias refers to. It returns every other node unchanged.
func Resolve(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// Text returns the value of a scalar. It returns "" for null and for every other node.
func Text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || IsNull(n) {
		return ""
	}
	return n.Value
}

// IsNull tells whether a node is null, explicit or empty.
func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// Describe returns the type of a node for a message. It leaves the value out, because the value may be a secret.
func Describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "fields"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!str":
		return "text"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!null":
		return "nothing"
	case "!!timestamp":
		return "a date"
	}
	return "a value tagged " + n.ShortTag()
}
