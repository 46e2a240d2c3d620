package render

import (
	"fmt"
	"sync/atomic"
)

// whereabouts say at which place the work on a release is. They can be read while the work goes on, also during a call that takes very
// long.
type whereabouts struct {
	stage     atomic.Pointer[string]
	templates atomic.Pointer[bounds] // nil while no templates run
}

func (w *whereabouts) set(stage string) { w.stage.Store(&stage) }

// run says that templates run within bounds until done is called.
func (w *whereabouts) run(b *bounds) (done func()) {
	w.templates.Store(b)
	return func() { w.templates.Store(nil) }
}

// String names the running template and the function that it calls. Before and after the templates, it names the stage.
func (w *whereabouts) String() string {
	if b := w.templates.Load(); b != nil {
		return b.current.String()
	}
	if stage := w.stage.Load(); stage != nil {
		return *stage
	}
	return ""
}

// current names the running file, template and function.
type current struct{ file, template, function atomic.Pointer[string] }

// String names the function and the template.
func (c *current) String() string {
	file, name, function := c.file.Load(), c.template.Load(), c.function.Load()
	text := "the templates"
	switch {
	case file != nil && name != nil && *file != *name:
		text = fmt.Sprintf("template %q, for %s", *name, *file)
	case file != nil:
		text = "template " + *file
	}
	if function != nil {
		text = "function " + *function + " of " + text
	}
	return text
}

// calls records that a function runs. called records that it has ended.
func (b *bounds) calls(function *string) { b.current.function.Store(function) }

func (b *bounds) called() { b.current.function.Store(nil) }
