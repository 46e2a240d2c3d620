package ui

import (
	"fmt"
	"io"

	"github.com/fleetctl/fleetctl/pkg/plain"
)

// Fprintf is fmt.Fprintf for views. A text among args stays on the line and in the column of the format, whatever it contains. Views print
// everything with Fprintf, except texts of several lines, which FprintText makes safe line by line.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	return fmt.Fprintf(w, Advise(w, format), unbroken(args)...)
}

func unbroken(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			out[i] = plain.Unbroken(v)
		case error:
			out[i] = plain.Unbroken(v.Error())
		case fmt.Stringer:
			out[i] = plain.Unbroken(v.String())
		case bool, int, int32, int64, uint16, uint32, uint64, float64, nil:
			out[i] = arg
		default: // a type of its own that is a text, or has texts in it
			out[i] = unbrokenValue{arg}
		}
	}
	return out
}

// unbrokenValue prints a value as ever, with the line ends and tabs of what comes out escaped.
type unbrokenValue struct{ value any }

// Format implements fmt.Formatter.
func (u unbrokenValue) Format(s fmt.State, verb rune) {
	_, _ = io.WriteString(s, plain.Unbroken(fmt.Sprintf(fmt.FormatString(s, verb), u.value))) // the printer's own buffer takes all
}

// FprintText writes text of several lines, such as a difference or notes, unchanged, with a line end. The Guard below all streams escapes
// only Hidden characters. Print a name or message inside a line with Fprintf.
func FprintText(w io.Writer, text string) (int, error) { return fmt.Fprintln(w, text) }
