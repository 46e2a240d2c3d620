// Package steps runs a workflow that is a readable slice of named steps. A step looks at the world before it acts, so a workflow that was killed
// is finished by running it again; no checkpoint file decides what is done.
package steps

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/progress"
)

// Step is one named piece of a workflow.
type Step struct {
	// Name in the form "verb object", unique in its workflow.
	Name string
	// Needs names the steps that must be done first. Steps that do not need each other run side by side.
	Needs []string
	// Done looks at the world and, where there is nothing to do, says why. It only looks: what loads, writes or starts anything is Run's. A nil
	// Done means that Run itself looks, and returns a NothingToDo where it changed nothing.
	Done func(ctx context.Context) (why string, done bool, err error)
	// Run does what is missing. It calls detail with what it is waiting for.
	Run func(ctx context.Context, detail func(string)) error
	// Work is Run for a step that takes values which other steps make, or makes some. A step has the one or the other. One that makes a value has no
	// Done: it would end without making it.
	Work Work
	// Timeout bounds the step; 0 stands for the workflow's own bound alone.
	Timeout time.Duration
	// Hint is the next command when the step runs out of time and its error has no hint of its own.
	Hint string
}

// Run executes steps as soon as what they need is done. The first failure cancels the steps that are still running; Run
// then waits for them and returns that failure.
func Run(ctx context.Context, report progress.Reporter, steps []Step) error {
	if err := Check(steps); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	finished := make(map[string]chan struct{}, len(steps))
	for _, s := range steps {
		finished[s.Name] = make(chan struct{})
	}
	results := make(chan error, len(steps))
	for _, s := range steps {
		go func() {
			for _, need := range s.Needs {
				select {
				case <-finished[need]:
				case <-ctx.Done():
					results <- nil // another step failed, or the user interrupted: said there
					return
				}
			}
			err := runStep(ctx, report, s)
			if err == nil {
				close(finished[s.Name])
			}
			results <- err
		}()
	}
	var first error
	for range steps {
		if err := <-results; err != nil && first == nil {
			first = err
			cancel(err)
		}
	}
	if first == nil {
		first = context.Cause(ctx)
	}
	return first
}

func runStep(ctx context.Context, report progress.Reporter, s Step) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	workflow := ctx
	if s.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.Timeout, &timeoutError{after: s.Timeout})
		defer cancel()
	}
	handle := report.Start(s.Name)
	if s.Done != nil {
		why, done, err := s.Done(ctx)
		if err != nil {
			return endFailed(workflow, handle, stepError(ctx, s, err))
		}
		if done {
			handle.Skip(why)
			return nil
		}
	}
	run := s.Run
	if s.Work.is() {
		run = s.Work.run
	}
	err := run(ctx, handle.Detail)
	why, nothing := errors.AsType[NothingToDo](err)
	if err == nil || nothing {
		if unmade := s.Work.unmade(); unmade != nil {
			err, nothing = unmade, false
		}
	}
	switch {
	case nothing:
		handle.Skip(string(why))
	case err != nil:
		return endFailed(workflow, handle, stepError(ctx, s, err))
	default:
		handle.Done()
	}
	return nil
}

// endFailed ends a step that failed. A step that stopped only because its workflow stopped reports nothing, unless the workflow is out of
// time: then each step says what it was waiting for.
func endFailed(workflow context.Context, handle progress.Step, err error) error {
	if _, late := errors.AsType[*timeoutError](context.Cause(workflow)); workflow.Err() != nil && !late {
		handle.Stop()
	} else {
		handle.Fail(err)
	}
	return err
}

// stepError names the step, and the bound that ended it where that is what happened.
func stepError(ctx context.Context, s Step, err error) error {
	hint := diag.Hint(err)
	if hint == "" {
		hint = s.Hint
	}
	return diag.Wrap(s.Name, TimedOut(ctx, err), hint)
}

// TimedOut is err, and where a bound of ours is what ended it, says so.
func TimedOut(ctx context.Context, err error) error {
	var timeout *timeoutError
	if err != nil && errors.As(context.Cause(ctx), &timeout) && !errors.As(err, &timeout) {
		return fmt.Errorf("%w: %w", timeout, err)
	}
	return err
}

// WithTimeout bounds a whole workflow; 0 is no bound. What runs out of time has an error that says so.
func WithTimeout(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit, &timeoutError{after: limit})
}

// timeoutError is the cause of a step that ran out of time.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string {
	return fmt.Sprintf("gave up after %s", e.after.Round(time.Second))
}

// NothingToDo is how a Run that looks at the world itself says that it changed nothing.
type NothingToDo string

func (n NothingToDo) Error() string { return string(n) }

func isNothingToDo(err error) bool {
	_, is := errors.AsType[NothingToDo](err)
	return is
}
