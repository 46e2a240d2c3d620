package schema

import (
	"fmt"
	"iter"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Type is the type of a problem.
type Type string

// The types of problems.
const (
	Unknown    Type = "unknown field"
	WrongType  Type = "wrong type"
	Required   Type = "required"
	Invalid    Type = "invalid"
	Duplicate  Type = "duplicate"
	Rule       Type = "rule"
	Metadata   Type = "metadata"
	Version    Type = "version"
	Deprecated Type = "deprecated" // a warning
)

// Problem is one fault of an object. Path is the path of the field, such as spec.pools[0].name. Names of fields may have dots.
type Problem struct {
	Type    Type
	Path    string
	Summary string
	Hint    string
}

func unknownField(path, name string, known []string) Problem {
	p := Problem{Type: Unknown, Path: path, Summary: "there is no such field"}
	switch nearest := diag.Nearest(name, known); {
	case nearest != "":
		p.Hint = "did you mean " + nearest + "?"
	case len(known) > 0 && len(known) <= 20:
		p.Hint = "known here: " + strings.Join(known, ", ")
	}
	return p
}

// inBody matches the beginning of the schema validator's messages.
var inBody = regexp.MustCompile(`^"?[^ "]*"? in body `)

// fromField turns an error of the API machinery into a problem. It quotes a value only if the field has a fixed choice of values and the
// value is short. Other values may be secrets.
func fromField(e *field.Error) Problem {
	p := Problem{Type: Invalid, Path: strings.TrimPrefix(e.Field, "<nil>."), Summary: inBody.ReplaceAllString(e.Detail, "")}
	if p.Path == "<nil>" || p.Path == "nil" {
		p.Path = ""
	}
	switch e.Type { //nolint:exhaustive // the other types keep their message
	case field.ErrorTypeRequired:
		p.Type = Required
		if p.Summary == "" {
			p.Summary = "required, and missing"
		}
	case field.ErrorTypeTypeInvalid:
		p.Type = WrongType
	case field.ErrorTypeDuplicate:
		p.Type, p.Summary = Duplicate, "is there twice"
	case field.ErrorTypeNotSupported:
		p.Summary = fmt.Sprintf("%s is not among the %s", short(e.BadValue), p.Summary)
		if value, ok := e.BadValue.(string); ok {
			if nearest := diag.Nearest(value, quotedWords(e.Detail)); nearest != "" {
				p.Hint = "did you mean " + nearest + "?"
			}
		}
	}
	if strings.HasPrefix(p.Path, "metadata") && p.Type != Required && !strings.HasPrefix(e.Detail, `"`) {
		p.Type = Metadata
	}
	return p
}

// short quotes a value of a field with a fixed choice of values.
func short(v any) string {
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%.40q", s)
	}
	return fmt.Sprintf("%.40v", v)
}

var quoted = regexp.MustCompile(`"([^"]*)"`)

// quotedWords returns the quoted words of a text, such as the choices in a message.
func quotedWords(text string) []string {
	var out []string
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// steps returns the parts of a path: "a", "[0]" and "b" for a[0].b.
func steps(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for path != "" {
			var step string
			switch i := strings.IndexAny(path, ".["); {
			case path[0] == '[':
				end := strings.IndexByte(path, ']')
				if end < 0 {
					end = len(path) - 1
				}
				step, path = path[:end+1], path[end+1:]
			case i < 0:
				step, path = path, ""
			default:
				step, path = path[:i], path[i:]
			}
			path = strings.TrimPrefix(path, ".")
			if step != "" && !yield(step) {
				return
			}
		}
	}
}

// splitLast splits a path into its parent and its last field.
func splitLast(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '.')
	return path[:max(i, 0)], path[i+1:]
}
