package valuesschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

// File is the name of the file of a chart that has the schema of its values.
const File = "values.schema.json"

// address is the schema's name in the library that compiles it. The library would make a relative name an absolute path of this machine.
const address = "chart:///" + File

// Error says what is wrong with the schema of a chart's values, and where.
type Error struct {
	// Path leads to the place in the schema. Line is set if the schema cannot be read beyond it.
	Path []string
	Line int
	Said string
}

// Error says what is wrong, without the place.
func (e *Error) Error() string { return e.Said }

// Decode reads the schema of a chart's values. A schema is an object, true, which accepts everything, or false, which accepts nothing.
// Errors are of the type Error.
func Decode(content []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(content))
	var document any
	err := decoder.Decode(&document)
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("it has more text after its end")
		}
	}
	if err != nil {
		at := decoder.InputOffset()
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = syntax.Offset
		} else if errors.Is(err, io.ErrUnexpectedEOF) {
			at = int64(len(content))
		}
		before := content[:min(at, int64(len(content)))]
		return nil, &Error{Line: 1 + bytes.Count(before, []byte("\n")), Said: "it is not JSON: " + err.Error()}
	}
	switch schema := document.(type) {
	case map[string]any:
		return schema, nil
	case bool:
		if schema {
			return nil, nil
		}
		return map[string]any{"not": map[string]any{}}, nil
	}
	return nil, &Error{Line: 1, Said: "a schema is an object, or true or false"}
}

// errorOf describes the library's error about a schema in the words of the chart.
func errorOf(err error) error {
	if invalid, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if failed, ok := errors.AsType[*jsonschema.ValidationError](invalid.Err); ok {
			leaf := deepestCause(failed)
			return &Error{
				Path: leaf.InstanceLocation,
				Said: leaf.ErrorKind.LocalizedString(message.NewPrinter(language.English)),
			}
		}
	}
	if load, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return &Error{
			Said: fmt.Sprintf("it refers to %s, but only the schema itself is read: copy the referred schema into its $defs", short(load.URL)),
		}
	}
	if lost, ok := errors.AsType[*jsonschema.JSONPointerNotFoundError](err); ok {
		return &Error{Said: fmt.Sprintf("it refers to %s, which is not there", short(lost.URL))}
	}
	return &Error{Said: short(err.Error())}
}

// deepestCause returns the first cause without further causes, among the causes at the deepest place of the schema.
func deepestCause(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return e
	}
	found := deepestCause(e.Causes[0])
	for _, cause := range e.Causes[1:] {
		if leaf := deepestCause(cause); len(leaf.InstanceLocation) > len(found.InstanceLocation) {
			found = leaf
		}
	}
	return found
}

// short removes the addresses of the schema and of what it refers to from a text.
func short(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, address+"#", "#"), strings.TrimSuffix(address, File), "")
}

// Place is the line, and the column if it is known, in content, which is the schema's file.
func (e *Error) Place(content []byte) (line, column int) {
	if e.Line > 0 || len(e.Path) == 0 {
		return max(e.Line, 1), 0
	}
	documents, err := yamledit.Parse(content)
	if err != nil || len(documents) == 0 {
		return 1, 0
	}
	n := documents[0]
	for _, step := range e.Path {
		next := yamledit.Lookup(n, step)
		if i, err := strconv.Atoi(step); err == nil && n.Kind == yaml.SequenceNode && i >= 0 && i < len(n.Content) {
			next = n.Content[i]
		}
		if next == nil {
			break
		}
		n = next
	}
	return n.Line, n.Column
}
