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

// What a file may be at most. A file that people edit is far below; a hostile one must not take the memory of the machine.
const (
	// MaxBytes is the size of a file.
	MaxBytes = 512 << 10
	maxNodes = 50_000
	maxDepth = 64
)

// Limits are what a file may be at most.
type Limits struct {
	// Bytes is the size of the file, and of its texts once aliases are expanded: each counts as what it stands for.
	Bytes int
	// Nodes is how many nodes there may be once aliases are expanded: each counts as what it stands for.
	Nodes int
	// Depth is how deep they may be nested.
	Depth int
}

// ReadLimits are the limits of a YAML file that fleetctl only reads. Flux's components are the largest file of a fleet repo: some 700 KiB.
var ReadLimits = Limits{Bytes: 8 << 20, Nodes: 500_000, Depth: 100}

// ErrExpands says that a file is too large for its reader, or too deep, once its aliases are expanded.
var ErrExpands = errors.New("file is too large or too deep once its aliases are expanded: write it out without aliases (*name)")

// ErrDeep says that a file is nested too deep, as it is written.
var ErrDeep = errors.New("it is nested too deep: no object that people write is")

// IsBeyond tells of an error of ParseWithin that the text is YAML beyond the limits, in its depth or once its aliases are expanded.
func IsBeyond(err error) bool { return errors.Is(err, ErrExpands) || errors.Is(err, ErrDeep) }

// Parse is ParseWithin for a file that people edit.
func Parse(src []byte) ([]*yaml.Node, error) {
	return ParseWithin(src, Limits{Bytes: MaxBytes, Nodes: maxNodes, Depth: maxDepth})
}

// ParseWithin returns the top node of each document in src. Errors say that the file is too large, before or after its aliases are
// expanded (ErrExpands), nested too deep (ErrDeep, with a line), is not text, or is not YAML.
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

// meter measures what documents expand to.
type meter struct{ budget, bytes int }

// spend takes what n expands to from the budget; the error says whether it or the depth that is left was not enough. An alias inside of its
// own anchor ends at the depth.
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

// yamlLine finds the line in a message of the YAML parser, which has it nowhere else.
var yamlLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:yaml: )?(?:unmarshal errors:\s+)?line (\d+): `) })

// Line takes the line out of an error of ParseWithin, or of another YAML parser: 0 where it says none. The rest is the message.
func Line(err error) (line int, message string) {
	message = err.Error()
	if m := yamlLine().FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1]) // the pattern is digits; one that overflows is no worse than none
		message = message[len(m[0]):]
	}
	return line, strings.TrimPrefix(message, "yaml: ")
}

// maxPlaced bounds the files that are read again to find a column.
const maxPlaced = 1 << 20

// Place is Line with the column, for an error that the YAML parser has with src: the line and the column that it gave up at, and the
// message. The parser says at most a line, often that of what stands around the mistake. It reads from the beginning and gives up where it
// cannot go on, so the shortest part of the file that it says the very same of ends there. 0: it is not known.
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
	if !fails(len(src)) { // it is an error of another reader, or none that the parser has
		return line, 0, message
	}
	end := 1 + sort.Search(len(src)-1, func(n int) bool { return fails(n + 1) })
	before := src[:end-1]
	return 1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]), message
}

// Lookup returns the value of a field of a mapping, or nil where n is something else or lacks it. Aliases are followed.
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

// Find returns the node at path below n, or nil.
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

// Nearest returns the node at path below n, or the last one on the way there: what a message about path can point at.
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

// Resolve returns what an alias stands for, and every other node as it is.
func Resolve(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// Text returns the value of a scalar; "" for null and for every other node.
func Text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || IsNull(n) {
		return ""
	}
	return n.Value
}

// IsNull tells whether a node is null, written out or not.
func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// Describe says what a node is, without its value, which may be a secret.
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
