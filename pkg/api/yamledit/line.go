package yamledit

import (
	"errors"
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// lineError is the error of an edit because of a line of the file. Its text has no line: see At.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return e.err.Error() }

func (e *lineError) Unwrap() error { return e.err }

// At returns NAME:LINE for the file and the line that an error of Set, Remove, RemoveItem or Append is about, and the name alone for an
// error about no line.
func At(name string, err error) string {
	if at, ok := errors.AsType[*lineError](err); ok && at.line > 0 {
		return name + ":" + strconv.Itoa(at.line)
	}
	return name
}

func inLine(n *yaml.Node, err error) error { return &lineError{n.Line, err} }

// unusual is why a text cannot be edited that is not as people usually write YAML.
const unusual = "it is written in an unusual way"

// cannotEdit is ErrCannotEdit for the node n, with the reason.
func cannotEdit(n *yaml.Node, why string) error {
	return inLine(n, fmt.Errorf("%w: %s", ErrCannotEdit, why))
}

// placed takes the line out of an error of the YAML parser, if it has one.
func placed(src []byte, err error) error {
	line, _, message := Place(src, err)
	if line == 0 {
		return err
	}
	return &lineError{line, errors.New(message)}
}
