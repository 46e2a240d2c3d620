package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Identity identifies a process, even after another process got its number. Identities can be compared with == and stored in a file.
type Identity struct {
	PID int `json:"pid"`
	// StartTime is when the process started, in the kernel's clock ticks since boot.
	StartTime uint64 `json:"startTime"`
	// Boot is the kernel's id of the boot that StartTime counts from.
	Boot string `json:"boot,omitempty"`
}

// ErrGone is in the tree of an error about a process that has ended.
var ErrGone = errors.New("the process has ended")

// Find returns the identity of the running process pid, or an error with ErrGone in its tree.
func Find(pid int) (Identity, error) { return find(pid) }

// Alive tells whether the process runs. A zombie does not.
func (i Identity) Alive() bool {
	now, err := find(i.PID)
	return err == nil && now == i
}

// Wait returns nil when the process has ended. It need not be a child of this process. If ctx ends first, the error has its cause.
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

// Signal sends sig to the process, and never to another one that has got its number. The error has ErrGone in its tree if the process has
// ended.
func (i Identity) Signal(sig syscall.Signal) error {
	// Get a handle first and then compare the identity. The handle's process cannot change between the two.
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
