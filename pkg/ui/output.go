package ui

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/diag"
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

// Print writes v as JSON or YAML, or calls human for a person.
func Print(s Streams, format Format, v any, human func(w io.Writer) error) error {
	switch format {
	case JSON:
		enc := json.NewEncoder(s.Out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	case YAML:
		out, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = s.Out.Write(out)
		return err
	case Human, SARIF, GitHub: // those of findings are views of their command
	}
	return human(s.Out)
}

// Fail prints err and its hint as every command does it.
func Fail(s Streams, err error) {
	fmt.Fprintf(s.Err, "%s %s\n", paint(s.ErrColor, red, "error:"), err)
	if hint := diag.Hint(err); hint != "" {
		fmt.Fprintf(s.Err, "%s %s\n", paint(s.ErrColor, bold, "hint:"), hint)
	}
}
