package render

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"
	syntax "text/template/parse"
	"time"
)

// The limits for the templates of one release. They are estimates, and far above the needs of fleetctl's own charts.
const (
	// maxText is the most bytes that one call of a function, or one template, may make. Files of a fleet repo have the same limit.
	maxText = maxBytes
	// maxTexts is the most bytes that all templates may make together. An included template counts at each place.
	maxTexts = 256 << 20
	// maxSteps is the most steps that the templates may take: turns of loops, runs of templates, and the costs of functions.
	maxSteps = 5_000_000
	// maxItems is the most items that one call of a function may make.
	maxItems = 1_000_000
	// tooDeep is how deep templates may include each other, as in Helm.
	tooDeep = 1000
	// The clock is read after every lookEvery calls and turns of loops, and after a call that costs lookFrom steps or more. A function without
	// a bound takes milliseconds at most.
	lookEvery = 8
	lookFrom  = 100
)

// boundError says that a template goes beyond the limits of a release.
type boundError struct{ text string }

func (e *boundError) Error() string { return e.text }

func beyond(format string, args ...any) error { return &boundError{fmt.Sprintf(format, args...)} }

// bounds counts what the templates of one release have used.
type bounds struct {
	texts, steps int
	made         int // bytes that functions have made
	// within is the time that the templates may take, and until its end; 0 means no limit. looks counts calls and turns of loops since the
	// start.
	within time.Duration
	until  time.Time
	looks  int
	// running are the running templates, outermost first.
	running []*string
	marks   marks
	// current is what runs now, for other goroutines.
	current current
}

// begin resets the bounds for the next release, whose templates may take the time within.
func (b *bounds) begin(within time.Duration) {
	b.texts, b.steps, b.made, b.looks, b.running = 0, 0, 0, 0, b.running[:0]
	b.within, b.until = within, time.Now().Add(within)
	b.current.file.Store(nil)
	b.current.template.Store(nil)
	b.called()
}

// spend counts steps, and reads the clock now and then. Its error says which template ran out of time. The error about a process that was
// killed for its time could not say that.
func (b *bounds) spend(steps int) error {
	if b.steps += steps; b.steps > maxSteps {
		return beyond("it takes more than %d steps: a loop, or what it calls in one, goes on for too long", maxSteps)
	}
	if b.looks++; b.within > 0 && (b.looks%lookEvery == 0 || steps >= lookFrom) && time.Now().After(b.until) {
		return beyond("out of time: the templates take longer than %s", b.within)
	}
	return nil
}

// at names the running template, and the file that it is run for.
func (b *bounds) at() string {
	if len(b.running) == 0 {
		return "a template"
	}
	file, last := *b.running[0], *b.running[len(b.running)-1]
	if file == last {
		return "template " + file
	}
	return fmt.Sprintf("template %q, for %s,", last, file)
}

// enter counts the start of a template, whether the action template, include or tpl started it.
func (b *bounds) enter(name *string) error {
	if b.running = append(b.running, name); len(b.running) == 1 {
		b.current.file.Store(name)
	}
	b.current.template.Store(name)
	b.called()
	if len(b.running) > tooDeep {
		return beyond("%s includes others more than %d deep: it, or one of them, includes itself", b.at(), tooDeep)
	}
	if err := b.spend(1); err != nil {
		return beyond("%s: %v", strings.TrimSuffix(b.at(), ","), err)
	}
	return nil
}

func (b *bounds) leave() {
	if b.running = b.running[:max(0, len(b.running)-1)]; len(b.running) > 0 {
		b.current.template.Store(b.running[len(b.running)-1])
	}
}

// marks are texts in parsed templates that meter recognises, and does not write. The address of a mark's only byte identifies it.
type marks map[*byte]*mark

// mark is the place where a template begins or ends, or where a loop begins its next turn.
type mark struct {
	kind byte
	name string
}

const (
	markEnter = 'e'
	markLeave = 'l'
	markTurn  = 't'
)

// put adds marks to templates that have none yet.
func (m marks) put(all *template.Template) {
	for _, t := range all.Templates() {
		if t.Tree == nil || t.Tree.Root == nil || m.in(t.Tree.Root) {
			continue
		}
		m.loops(t.Tree.Root)
		t.Tree.Root.Nodes = slices.Concat(
			[]syntax.Node{m.node(mark{markEnter, t.Name()})}, t.Tree.Root.Nodes, []syntax.Node{m.node(mark{kind: markLeave})})
	}
}

func (m marks) in(list *syntax.ListNode) bool {
	if len(list.Nodes) == 0 {
		return false
	}
	first, ok := list.Nodes[0].(*syntax.TextNode)
	if !ok || len(first.Text) != 1 {
		return false
	}
	_, ok = m[&first.Text[0]]
	return ok
}

func (m marks) node(k mark) *syntax.TextNode {
	text := []byte{k.kind}
	m[&text[0]] = &k
	return &syntax.TextNode{NodeType: syntax.NodeText, Text: text}
}

// loops adds marks to the loops in a list of nodes.
func (m marks) loops(list *syntax.ListNode) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *syntax.IfNode:
			m.loops(n.List)
			m.loops(n.ElseList)
		case *syntax.WithNode:
			m.loops(n.List)
			m.loops(n.ElseList)
		case *syntax.RangeNode:
			m.loops(n.List)
			m.loops(n.ElseList)
			n.List.Nodes = append([]syntax.Node{m.node(mark{kind: markTurn})}, n.List.Nodes...)
		}
	}
}

// meter is the writer that a template writes to. It counts bytes and marks.
type meter struct {
	to     *bytes.Buffer
	bounds *bounds
}

// Write implements io.Writer.
func (w meter) Write(p []byte) (int, error) {
	b := w.bounds
	if len(p) == 1 {
		if k, ok := b.marks[&p[0]]; ok {
			return 1, b.pass(k)
		}
	}
	if b.texts += len(p); b.texts > maxTexts || w.to.Len()+len(p) > maxText {
		return 0, beyond("%s makes more than %d MiB: range, include or a value makes too much", b.at(), min(maxText, maxTexts)>>20)
	}
	return w.to.Write(p)
}

func (b *bounds) pass(k *mark) error {
	switch k.kind {
	case markEnter:
		return b.enter(&k.name)
	case markLeave:
		b.leave()
		return nil
	}
	if err := b.spend(1); err != nil {
		return beyond("range in %s: %v", strings.TrimSuffix(b.at(), ","), err)
	}
	return nil
}

// boundOf returns the boundError in an error's chain, with the innermost place in a template. It returns nil for other errors.
func boundOf(err error) error {
	bound, ok := errors.AsType[*boundError](err)
	if !ok {
		return nil
	}
	var at error = bound
	for err != nil {
		if exec, ok := err.(template.ExecError); ok { //nolint:errorlint // walks the chain itself
			at = exec
		}
		err = errors.Unwrap(err)
	}
	return &boundError{at.Error()}
}
