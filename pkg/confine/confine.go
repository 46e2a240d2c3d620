// Package confine runs tasks on untrusted files in a separate process. The process is this program again, without environment variables,
// PATH and network, with only the files of the task, and with bounds on memory and time. One process does a whole task. If the process
// dies, the caller learns what it worked on, and the task runs again without that thing.
package confine

import (
	"context"
	"fmt"
	"time"
)

// Task is a function that can run in a separate process. encoding/gob writes its input and its output, exported fields only. A type whose
// pointer is an encoding.BinaryAppender and an encoding.BinaryUnmarshaler writes and reads itself.
type Task[In, Out any] struct {
	name string
	do   func(ctx context.Context, in In) (Out, error)
}

// New names a function. To run the function in a separate process, the Program has to know its task.
func New[In, Out any](name string, do func(ctx context.Context, in In) (Out, error)) *Task[In, Out] {
	return &Task[In, Out]{name, do}
}

// Needs are the files and the calls that a task may use.
type Needs struct {
	// Read are the files and folders that the task may read. Write are the folders that it may also write to. Missing folders are left out.
	Read, Write []string
	// Calls are the functions of the caller that the task may call, by name: see Call.
	Calls map[string]func(ctx context.Context, in []byte) ([]byte, error)
}

// Run runs the task: in a separate process if ctx has a Program, else in this process. Errors: those of the task, and a *Death.
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

// With returns a context in which tasks run in separate processes.
func With(ctx context.Context, p *Program) context.Context {
	return context.WithValue(ctx, programKey{}, p)
}

// Begin names the thing that a task works on from now on, until end is called. group is what the thing has in common with others, such as a
// chart. If an earlier process has died of the thing, Begin returns an error, and the task must leave the thing out. Names do not nest.
func Begin(ctx context.Context, name, group string) (end func(), err error) {
	return Watch(ctx)(name, group, nil)
}

// Watch is Begin for a task without a context. at, if set, returns the present place of the work within the thing; "" if it is not known.
// at is called from time to time. If the process dies of the thing, its Death has the last place.
func Watch(ctx context.Context) func(name, group string, at func() string) (end func(), err error) {
	return func(name, group string, at func() string) (func(), error) {
		if w, ok := ctx.Value(watchKey{}).(*watch); ok {
			return w.begin(name, group, at)
		}
		return func() {}, nil
	}
}

// TimeLimit returns how long a task may work on one thing in a separate process; 0 if the task has no such process.
func TimeLimit(ctx context.Context) time.Duration {
	if w, ok := ctx.Value(watchKey{}).(*watch); ok {
		return w.time
	}
	return 0
}

// Call calls a function of the process that has started the task. Errors are those of the function.
func Call(ctx context.Context, name string, in []byte) ([]byte, error) {
	w, ok := ctx.Value(watchKey{}).(*watch)
	if !ok {
		return nil, fmt.Errorf("no one is there to answer %q", name)
	}
	return w.call(ctx, name, in)
}

// Cause is the limit that a process has exceeded.
type Cause string

// The causes.
const (
	Memory  Cause = "memory"
	Time    Cause = "time"
	Crashed Cause = "crashed"
)

// Death is the error for a process that has ended before its task was done.
type Death struct {
	Cause Cause
	// At is the thing that the process worked on; "" if it is not known.
	At string
	// Place is the last place of the work within the thing; "" if it is not known.
	Place string
	// Limits are the limits of the process.
	Limits Limits
	// Detail is the last output of the process.
	Detail string
}

// Error names the exceeded limit, and the thing that the process worked on.
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
