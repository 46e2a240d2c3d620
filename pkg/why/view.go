package why

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/status"
)

// View writes the report for a person: the first cause with its remedy, and then the chain from the commit to the
// cloud.
func View(w io.Writer, r *Report, style status.Style) error {
	p := &page{style: style}
	switch {
	case r.Ready:
		p.line(p.mark(StateOK) + " cluster " + text(r.Cluster) + " is as it should be")
	case len(r.Causes) == 0:
		p.line(p.mark(StateWrong) + " cluster " + text(r.Cluster) + ": no fault was found, but not everything could be read")
	default:
		p.line(p.mark(StateWrong) + " cluster " + text(r.Cluster) + " is not as it should be")
	}
	for i, c := range r.Causes {
		p.cause(i, c)
	}
	p.line("")
	p.line(p.dim("from the commit to the cloud"))
	p.chain(r.Chain)
	for _, u := range r.Unknown {
		p.line(p.mark(StateUnknown) + " not known: " + text(u))
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

// text is text of somebody else, on one line.
func text(s string) string { return plain.Unbroken(s) }

// page collects the output.
type page struct {
	b     strings.Builder
	style status.Style
}

func (p *page) line(s string) { p.b.WriteString(strings.TrimRight(text(s), " ") + "\n") }

func (p *page) dim(s string) string { return paint(p.style.Dim, s) }

func paint(with func(string) string, s string) string {
	if with == nil {
		return s
	}
	return with(s)
}

func (p *page) mark(s State) string {
	switch s {
	case StateOK:
		return paint(p.style.Good, "✓")
	case StateWaiting, StateUnknown:
		return p.dim("…")
	case StateWrong, StateAbsent:
	}
	return paint(p.style.Bad, "✗")
}

func (p *page) cause(i int, c Cause) {
	title := "the first cause"
	if i > 0 {
		title = "another cause"
	}
	p.line("")
	where := text(c.Object)
	if c.Condition != "" {
		where += ", " + text(c.Condition)
	}
	p.line(title + ": " + where + p.dim(" ("+string(c.Stage)+")"))
	p.line("  " + text(c.Reason))
	for _, w := range c.Words {
		p.line("  last warning: " + text(w))
	}
	if c.Remedy != nil {
		p.line("  " + c.Remedy.Title + ". " + c.Remedy.Means)
		p.line("  remedy: " + c.Remedy.Do)
		p.line(p.dim("  see " + Page + "#" + c.Remedy.ID))
	}
}

// chain writes one line for each link, and one for each further trouble of the link.
func (p *page) chain(links []Link) {
	var stages, objects int
	for _, l := range links {
		stages = max(stages, utf8.RuneCountInString(string(l.Stage)))
		objects = min(max(objects, utf8.RuneCountInString(named(l))), widest)
	}
	last := Stage("")
	for _, l := range links {
		stage := string(l.Stage)
		if l.Stage == last {
			stage = ""
		}
		last = l.Stage
		head := p.mark(l.State) + " " + pad(stage, stages) + "  " + pad(named(l), objects)
		if len(l.Troubles) == 0 {
			state := ""
			if l.State == StateAbsent {
				state = "  does not exist"
			}
			p.line(head + state)
		}
		for i, t := range l.Troubles {
			if i > 0 {
				head = "  " + pad("", stages) + "  " + pad("", objects)
			}
			p.line(head + "  " + troubleLine(t))
		}
	}
}

// widest bounds the padding of a column.
const widest = 72

func named(l Link) string {
	if l.Detail == "" {
		return text(l.Object)
	}
	return text(l.Object) + " (" + text(l.Detail) + ")"
}

func troubleLine(t Trouble) string {
	if t.Condition == "" {
		return text(t.Reason)
	}
	return text(t.Condition) + "  " + text(t.Reason)
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}
