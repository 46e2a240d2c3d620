// Package preflight looks for what would stop a bootstrap, before anything is created: the container engine, the limits of
// the kernel, disk, memory, ports, names. A check only looks. Other packages contribute checks of their own (Git,
// credentials) through the same type; a command renders the reports.
package preflight

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Status is the outcome of a check.
type Status string

// The outcomes.
const (
	StatusOK   Status = "ok"
	StatusWarn Status = "warn" // works, or may work; the user should know
	StatusFail Status = "fail" // the bootstrap would fail
	StatusSkip Status = "skip" // could not be looked at here, or does not apply
)

// Result is what a check found. Summary is one line; Hint is the exact fix, empty where there is nothing to do.
type Result struct {
	Status  Status `json:"status"`
	Summary string `json:"summary"`
	Hint    string `json:"hint,omitempty"`
}

// OK is a Result with nothing to do.
func OK(format string, args ...any) Result {
	return Result{Status: StatusOK, Summary: fmt.Sprintf(format, args...)}
}

// Warn is a Result that does not stop the work.
func Warn(hint, format string, args ...any) Result {
	return Result{Status: StatusWarn, Summary: fmt.Sprintf(format, args...), Hint: hint}
}

// Fail is a Result that stops the work.
func Fail(hint, format string, args ...any) Result {
	return Result{Status: StatusFail, Summary: fmt.Sprintf(format, args...), Hint: hint}
}

// Skip is a Result that says why there was nothing to look at.
func Skip(format string, args ...any) Result {
	return Result{Status: StatusSkip, Summary: fmt.Sprintf(format, args...)}
}

// FailWith is Fail for an error: its text, and its hint if it carries one.
func FailWith(err error) Result { return Fail(diag.Hint(err), "%v", err) }

// Check is one look at the world. Run must not change it, and must end when its context does.
type Check struct {
	// Name in lower case, a noun: "inotify limits".
	Name string
	Run  func(ctx context.Context) Result
}

// Report is a check's result with its name and how long it took.
type Report struct {
	Name string `json:"name"`
	Result
	Seconds float64 `json:"seconds"`
}

// Reports are the results of all checks, in the order of the checks.
type Reports []Report

// side by side at most; checks mostly wait for other programs and for the network.
const parallel = 8

// patience with one check: one that hangs must not hang the command.
const patience = 30 * time.Second

// grace is how long a check that ran out of time may still take to say what it was waiting for: a program that it runs is ended first.
const grace = 3 * time.Second

// Run runs the checks side by side and returns their reports in their order. A check that does not end in time, or at all,
// is reported as failed.
func Run(ctx context.Context, checks ...Check) Reports {
	reports := make(Reports, len(checks))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, check := range checks {
		group.Go(func() error {
			begin := time.Now()
			result := runOne(ctx, check)
			reports[i] = Report{Name: check.Name, Result: result, Seconds: time.Since(begin).Seconds()}
			return nil
		})
	}
	_ = group.Wait() // checks return results, not errors
	return reports
}

func runOne(ctx context.Context, check Check) Result {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %s", patience))
	defer cancel()
	done := make(chan Result, 1)
	go func() { done <- check.Run(ctx) }()
	select {
	case r := <-done:
		return r
	case <-ctx.Done():
	}
	late := Fail("", "%v", context.Cause(ctx))
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) { // whoever interrupts does not wait
		return late
	}
	select {
	case r := <-done:
		return r.after(late)
	case <-time.After(grace):
		return late
	}
}

// after is the result of a check whose time was up, which a failure says.
func (r Result) after(late Result) Result {
	if r.Status == StatusFail && !strings.Contains(r.Summary, late.Summary) {
		r.Summary = late.Summary + ": " + r.Summary
	}
	return r
}

// Count returns how many reports have that status.
func (rs Reports) Count(status Status) int {
	n := 0
	for _, r := range rs {
		if r.Status == status {
			n++
		}
	}
	return n
}
