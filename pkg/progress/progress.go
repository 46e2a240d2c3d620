// Package progress reports the progress of long work. Workflows and adapters report to a Reporter. The view decides how the progress looks:
// plain lines, a live terminal, or nothing.
package progress

import "time"

// Reporter receives the steps of long work. It is safe for use by several goroutines at once: independent steps run
// side by side.
type Reporter interface {
	// Start announces a step by a short name in the form "verb object" ("install providers") and returns its handle.
	Start(name string) Step
	// Warn tells something that the user should know and that does not stop the work.
	Warn(message string)
}

// Step is one running step. Exactly one of Done, Skip, Stop and Fail ends it; later calls have no effect.
type Step interface {
	// Detail replaces the line that says what the step is waiting for or working on now.
	Detail(text string)
	// Done ends the step well.
	Done()
	// Skip ends the step because there was nothing to do, and says why.
	Skip(why string)
	// Stop ends the step unfinished, for a reason that is told elsewhere: another step failed, or the user interrupted.
	Stop()
	// Fail ends the step with its error.
	Fail(err error)
}

// Event is one finished step, for results that a script reads.
type Event struct {
	Step    string        `json:"step"`
	Took    time.Duration `json:"-"`
	Seconds float64       `json:"seconds"`
	Outcome string        `json:"outcome"` // done, skipped, stopped, failed
	Detail  string        `json:"detail,omitempty"`
}

// Discard is a Reporter that tells nobody.
var Discard Reporter = discard{}

type discard struct{}

func (discard) Start(string) Step { return discardStep{} }
func (discard) Warn(string)       {}

type discardStep struct{}

func (discardStep) Detail(string) {}
func (discardStep) Done()         {}
func (discardStep) Skip(string)   {}
func (discardStep) Stop()         {}
func (discardStep) Fail(error)    {}
