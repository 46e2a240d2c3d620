// Package confine runs tasks on untrusted files in a separate process. The process is this program again, without environment variables,
// PATH and network, with only the files of the task, and with bounds on memory and time. One process does all of a task. Where it dies, the
// caller learns at what, and the task is run again without that.
package confine

import (
	"context"
	"fmt"
	"time"
)

// Task is a function that can run in a process of its own. What goes in and comes out is written by encoding/gob, exported fields alone,
// unless a pointer to it is an encoding.BinaryAppender and an encoding.BinaryUnmarshaler: those write and read it themselves.
type Task[In, Out any] struct {
	name string
	do   func(ctx context.Context, in In) (Out, error)
}

// New names a function. Program has to know it where it is to run in a process of its own.
func New[In, Out any](name string, do func(ctx context.Context, in In) (Out, error)) *Task[In, Out] {
	return &Task[In, Out]{name, do}
}

// Needs are what a task needs of the world.
type Needs struct {
	// Read are files and folders that it may read. Write are folders that it may write in as well; one that is not there is left out.
	Read, Write []string
	// Calls are what it may ask of who started it, by their names: see Call.
	Calls map[string]func(ctx context.Context, in []byte) ([]byte, error)
}

// Run runs the task: in a process of its own where ctx has a Program, else in this one. Errors are those of the task, and a *Death.
func (t *Task[In, Out]) Run(ctx context.Context, in In, needs Needs) (Out, error) {
	p, ok := ctx.Value(programKey{}).(*Program)
	if !ok {
		return t.do(context.WithValue(ctx, watchKey{}, &watch{calls: needs.Calls}), in)
	}
	var out Out
	err := p.run(ctx, t.name, &in, func(text []byte) error {
		var fresh Out
		defer func() { out = fresh }()
		return decode(text, &fresh)
	}, needs)
	return out, err
}

type (
	programKey struct{}
	watchKey   struct{}
)

// With returns a context in which tasks run in processes of their own.
func With(ctx context.Context, p *Program) context.Context {
	return context.WithValue(ctx, programKey{}, p)
}

// Begin says what a task works on from now on, until end is called. group is what it has in common with others, such as a chart. The error
// says why it is not to be worked on: it was what an earlier process died of. Names say all that a reader needs; they do not nest.
func Begin(ctx context.Context, name, group string) (end func(), err error) {
	return Watch(ctx)(name, group, nil)
}

// Watch is Begin for who is given no context. at, if set, says at what place within the thing the work is; "" where that is not known.
// It is called now and then while the work goes on: where the process dies of the thing, its Death has the place.
func Watch(ctx context.Context) func(name, group string, at func() string) (end func(), err error) {
	return func(name, group string, at func() string) (func(), error) {
		if w, ok := ctx.Value(watchKey{}).(*watch); ok {
			return w.begin(name, group, at)
		}
		return func() {}, nil
	}
}

// TimeLimit is how long a task may work on one thing in a process of its own; 0 where it has none.
func TimeLimit(ctx context.Context) time.Duration {
	if w, ok := ctx.Value(watchKey{}).(*watch); ok {
		return w.time
	}
	return 0
}

// Call asks who started the task. Errors are those of who answers.
func Call(ctx context.Context, name string, in []byte) ([]byte, error) {
	w, ok := ctx.Value(watchKey{}).(*watch)
	if !ok {
		return nil, fmt.Errorf("no one is there to answer %q", name)
	}
	return w.call(ctx, name, in)
}

// Cause is what a process ran out of.
type Cause string

// The causes.
const (
	Memory  Cause = "memory"
	Time    Cause = "time"
	Crashed Cause = "crashed"
)

// Death is the end of a process before its task was done.
type Death struct {
	Cause Cause
	// At is what it worked on; "" where that is not known.
	At string
	// Place is where within that it was at last; "" where that is not known.
	Place string
	// Limits are those that held.
	Limits Limits
	// Detail is what the process said at last.
	Detail string
}

// Error says what ran out, and at what.
func (d *Death) Error() string {
	at := ""
	if d.At != "" {
		at = d.At + ": "
	}
	switch d.Cause {
	case Memory:
		return fmt.Sprintf("%sout of memory: it takes more than %s%s", at, d.Limits.memoryText(), d.place())
	case Time:
		return fmt.Sprintf("%sout of time: it takes longer than %s%s", at, d.Limits.Time, d.place())
	case Crashed:
	}
	return fmt.Sprintf("%sthe process that renders ended: %s%s", at, d.Detail, d.place())
}

func (d *Death) place() string {
	if d.Place == "" {
		return ""
	}
	return ", in " + d.Place
}
