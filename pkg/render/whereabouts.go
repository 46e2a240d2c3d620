package render

import (
	"fmt"
	"sync/atomic"
)

// whereabouts say where the work on a release is. They may be asked while it goes on, also while a single call takes all time there is.
type whereabouts struct {
	stage     atomic.Pointer[string]
	templates atomic.Pointer[bounds] // nil while none run
}

func (w *whereabouts) set(stage string) { w.stage.Store(&stage) }

// run is for templates that run within bounds, until done is called.
func (w *whereabouts) run(b *bounds) (done func()) {
	w.templates.Store(b)
	return func() { w.templates.Store(nil) }
}

// String is the template that runs, and the function that it calls, or the stage before and after that.
func (w *whereabouts) String() string {
	if b := w.templates.Load(); b != nil {
		return b.current.String()
	}
	if stage := w.stage.Load(); stage != nil {
		return *stage
	}
	return ""
}

// current is what runs of templates.
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

// calls notes that a function runs. called notes that it has ended.
func (b *bounds) calls(function *string) { b.current.function.Store(function) }

func (b *bounds) called() { b.current.function.Store(nil) }
