package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// Format is how a result is printed.
type Format string

// The formats that -o takes.
const (
	Human Format = "human"
	JSON  Format = "json"
	YAML  Format = "yaml"
)

// The formats that commands which find problems take as well: SARIF 2.1.0, and the annotations of a GitHub workflow.
const (
	SARIF  Format = "sarif"
	GitHub Format = "github"
)

// The formats that lists take as well: more columns, and names alone, one a line.
const (
	Wide Format = "wide"
	Name Format = "name"
)

// Formats lists what -o takes, for completion and errors.
var Formats = []string{string(Human), string(JSON), string(YAML)}

// ParseFormat reads the value of -o; more are the formats that the command takes besides Formats.
func ParseFormat(s string, more ...string) (Format, error) {
	known := append(slices.Clone(Formats), more...)
	if slices.Contains(known, s) {
		return Format(s), nil
	}
	return "", diag.Usage("use one of "+strings.Join(known, ", "), "unknown output format %q", s)
}

// Print writes v as JSON or YAML, or calls human for a person. A list of v that is nil is written as an empty one.
func Print(s Streams, format Format, v any, human func(w io.Writer) error) error {
	s = s.Guarded()
	switch format {
	case JSON:
		return writeJSON(s.Out, withLists(v))
	case YAML:
		// By way of JSON that is plain already: YAML cannot be read with control characters in it, and so would not be written.
		raw, err := json.Marshal(withLists(v))
		if err != nil {
			return err
		}
		out, err := yaml.JSONToYAML(plain.JSON(raw))
		if err != nil {
			return err
		}
		if out, err = plain.YAML(out); err != nil {
			return err
		}
		_, err = s.Out.Write(out)
		return err
	case Human, Wide, Name, SARIF, GitHub: // these are views of their command
	}
	return human(s.Out)
}

// writeJSON writes v as people and programs can both read it.
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(plain.JSON(b.Bytes()))
	return err
}

// Fail prints err and its hint as every command does it.
func Fail(s Streams, err error) {
	s = s.Guarded()
	fmt.Fprintf(s.Err, "%s %s\n", paint(s.ErrColor, plain.Red, "error:"), plain.Indented(err.Error()))
	if hint := diag.Hint(err); hint != "" {
		fmt.Fprintf(s.Err, "%s %s\n", paint(s.ErrColor, plain.Bold, "hint:"), plain.Indented(Advise(s.Err, hint)))
	}
}
