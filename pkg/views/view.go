// Package views prints the results of commands. It has one view for each result, which a program gets as data and a person as text. All
// views are here, so that their common parts (a commit, a count, a table) look alike. A view knows only the result, and not how the command
// got it.
package views

import (
	"io"

	"github.com/fleetctl/fleetctl/pkg/ui"
)

// View is how one result is shown.
type View interface {
	// Data returns the result for a program, as JSON or YAML.
	Data() any
	// Human writes the result for a person.
	Human(p *Page) error
}

// Page is what a person reads.
type Page struct {
	ui.Streams
	// Format is ui.Human, or for a list also ui.Wide or ui.Name.
	Format ui.Format
	// Verbose asks for everything that is otherwise summed up.
	Verbose bool
}

// Print shows a view to a person or to a program, depending on the format. It completes the commands in the result's advice; see
// ui.Streams.Advising.
func Print(s ui.Streams, format ui.Format, verbose bool, v View) error {
	advise(v.Data(), func(text string) string { return ui.Advise(s.Out, text) })
	var data any
	if format == ui.JSON || format == ui.YAML {
		data = v.Data()
	}
	return ui.Print(s, format, data, func(w io.Writer) error {
		page := &Page{Streams: s.Guarded(), Format: format, Verbose: verbose}
		page.Out = w
		return v.Human(page)
	})
}

// view is a View of a result and a function.
type view struct {
	data  any
	human func(p *Page) error
}

// Data implements View.
func (v view) Data() any { return v.data }

// Human implements View.
func (v view) Human(p *Page) error { return v.human(p) }

// of is the view of a result that is text on standard output.
func of[T any](result T, human func(w io.Writer, result T) error) View {
	return view{result, func(p *Page) error { return human(p.Out, result) }}
}

// named is the view of a result that lists things by name, although it is no table: with -o name it shows only their names.
func named(result any, names []string, human func(p *Page) error) View {
	return view{result, func(p *Page) error {
		if p.Format != ui.Name {
			return human(p)
		}
		return table[string]{name: func(name string) string { return name }}.printNames(p.Out, names)
	}}
}

// list is the view of a list. Programs get result, and people see the table.
func list[T any](result any, all []T, t table[T]) View {
	return view{result, func(p *Page) error { return t.print(p.Out, p.Format, all) }}
}
