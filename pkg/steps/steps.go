// Package steps runs a workflow, which is a slice of named steps. A step looks at the present state before it acts. So a killed workflow
// is finished by running it again, without a checkpoint file.
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
	// Needs names the steps that must be done first. Steps that do not need each other run in parallel.
	Needs []string
	// Done finds out whether the step has nothing to do, and why. It only looks: loading, writing and starting belong to Run. Without
	// Done, Run looks itself, and returns a NothingToDo if it has changed nothing.
	Done func(ctx context.Context) (why string, done bool, err error)
	// Run does the missing work. It calls detail with each object that it waits for.
	Run func(ctx context.Context, detail func(string)) error
	// Work replaces Run in a step that takes values of other steps, or makes values. A step that makes a value must not have a Done,
	// which would end the step without the value.
	Work Work
	// Timeout bounds the step. 0 means that only the workflow's timeout does.
	Timeout time.Duration
	// Hint is the hint if the step runs out of time and its error has no hint.
	Hint string
}

// Run executes each step as soon as the steps that it needs are done. The first failure cancels the running steps. Run then waits for
// them and returns the first failure, with the step's name.
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
					results <- nil // another step has failed, or the user has interrupted the run; that is reported already
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

// endFailed ends the progress line of a failed step. A step that stopped because its workflow stopped reports no error, unless the
// workflow ran out of time. Then each step reports what it was waiting for.
func endFailed(workflow context.Context, handle progress.Step, err error) error {
	if _, late := errors.AsType[*timeoutError](context.Cause(workflow)); workflow.Err() != nil && !late {
		handle.Stop()
	} else {
		handle.Fail(err)
	}
	return err
}

// stepError adds the step's name to err, and the timeout if that ended the step.
func stepError(ctx context.Context, s Step, err error) error {
	hint := diag.Hint(err)
	if hint == "" {
		hint = s.Hint
	}
	return diag.Wrap(s.Name, TimedOut(ctx, err), hint)
}

// TimedOut adds the timeout of a step or workflow to err, if that ended ctx. Otherwise it returns err.
func TimedOut(ctx context.Context, err error) error {
	var timeout *timeoutError
	if err != nil && errors.As(context.Cause(ctx), &timeout) && !errors.As(err, &timeout) {
		return fmt.Errorf("%w: %w", timeout, err)
	}
	return err
}

// WithTimeout bounds a whole workflow; 0 is no bound. An error after the timeout names it.
func WithTimeout(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit, &timeoutError{after: limit})
}

// timeoutError is the cause of a context that ran out of time.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string {
	return fmt.Sprintf("gave up after %s", e.after.Round(time.Second))
}

// NothingToDo is the error of a Run that has changed nothing. It is a reason and not a failure.
type NothingToDo string

func (n NothingToDo) Error() string { return string(n) }

func isNothingToDo(err error) bool {
	_, is := errors.AsType[NothingToDo](err)
	return is
}
