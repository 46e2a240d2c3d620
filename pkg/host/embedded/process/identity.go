package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Identity tells a process from any other that has had or will have its number. Identities can be compared with ==, and kept
// in a file.
type Identity struct {
	PID int `json:"pid"`
	// StartTime is when it started, in the kernel's ticks since boot.
	StartTime uint64 `json:"startTime"`
	// Boot is the kernel's id of the boot that StartTime counts from.
	Boot string `json:"boot,omitempty"`
}

// ErrGone is in the tree of the errors of a process that is no more.
var ErrGone = errors.New("the process has ended")

// Find returns the identity of the running process pid, or an error with ErrGone in its tree.
func Find(pid int) (Identity, error) { return find(pid) }

// Alive tells whether the process runs. One that has ended and is not yet reaped does not.
func (i Identity) Alive() bool {
	now, err := find(i.PID)
	return err == nil && now == i
}

// Wait returns nil when the process has ended, whoever's child it is, or the context's cause if that is first.
func (i Identity) Wait(ctx context.Context) error {
	for i.Alive() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("process %d runs still: %w", i.PID, context.Cause(ctx))
		case <-time.After(leftoverPoll):
		}
	}
	return nil
}

// Signal sends sig to that process and to no other that has its number by now; the error has ErrGone in its tree if it has
// ended.
func (i Identity) Signal(sig syscall.Signal) error {
	// A handle first, then the look: what the handle stands for cannot change between the two.
	p, err := os.FindProcess(i.PID)
	if err != nil {
		return fmt.Errorf("signal process %d: %w", i.PID, err)
	}
	defer func() { _ = p.Release() }()
	if !i.Alive() {
		return fmt.Errorf("signal process %d: %w", i.PID, ErrGone)
	}
	switch err := p.Signal(sig); {
	case errors.Is(err, os.ErrProcessDone):
		return fmt.Errorf("signal process %d: %w", i.PID, ErrGone)
	case err != nil:
		return fmt.Errorf("signal process %d: %w", i.PID, err)
	}
	return nil
}
