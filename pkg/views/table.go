package views

import (
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/fleetctl/fleetctl/pkg/ui"
)

// table describes how the items of a list are shown to a person. With -o name it shows only their names, with -o wide
// also the wide columns.
type table[T any] struct {
	// none is the message for an empty list.
	none string
	// name returns the name by which commands call an item.
	name    func(item T) string
	columns []column[T]
}

// column of a table. A wide column is shown only with -o wide. An optional column is shown only if one of the items has
// a value for it.
type column[T any] struct {
	title          string
	of             func(item T) string
	wide, optional bool
}

func (c column[T]) isShown(format ui.Format, all []T) bool {
	return (!c.wide || format == ui.Wide) && (!c.optional || slices.ContainsFunc(all, func(item T) bool { return c.of(item) != "" }))
}

func (t table[T]) print(w io.Writer, format ui.Format, all []T) error {
	if format == ui.Name {
		return t.printNames(w, all)
	}
	if len(all) == 0 {
		_, err := ui.FprintText(w, t.none)
		return err
	}
	columns := slices.DeleteFunc(slices.Clone(t.columns), func(c column[T]) bool { return !c.isShown(format, all) })
	titles := make([]string, 0, len(columns))
	for _, c := range columns {
		titles = append(titles, c.title)
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	ui.Fprintf(out, strings.Repeat("%s\t", len(titles)-1)+"%s\n", anyOf(titles)...)
	for _, item := range all {
		cells := make([]string, 0, len(columns))
		for _, c := range columns {
			cells = append(cells, c.of(item))
		}
		for len(cells) > 1 && cells[len(cells)-1] == "" { // no blanks at the end of a line
			cells = cells[:len(cells)-1]
		}
		ui.Fprintf(out, strings.Repeat("%s\t", len(cells)-1)+"%s\n", anyOf(cells)...)
	}
	return out.Flush()
}

// printNames writes each name once, one on a line, as arguments for another command.
func (t table[T]) printNames(w io.Writer, all []T) error {
	seen := map[string]bool{}
	for _, item := range all {
		name := t.name(item)
		if seen[name] {
			continue
		}
		seen[name] = true
		if _, err := ui.Fprintf(w, "%s\n", name); err != nil {
			return err
		}
	}
	return nil
}

func anyOf(texts []string) []any {
	out := make([]any, 0, len(texts))
	for _, text := range texts {
		out = append(out, text)
	}
	return out
}
