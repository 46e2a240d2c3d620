// Package process starts and supervises child processes. Each child has its own process group, ends with its parent however the parent
// ends, and writes its output to a log of bounded size. A process that later gets the same number is not mistaken for the child. The
// package works on Linux; elsewhere Start returns an error.
package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Spec describes a process. Name and Path are required.
type Spec struct {
	// Name of the process in errors and statuses.
	Name string
	// Path of the program. It is not looked up in PATH.
	Path string
	// Args of the program, without its name. Every user of the machine can read them, so they must hold no secret.
	Args []string
	// Env is the whole environment ("KEY=value"): nothing is inherited.
	Env []string
	// Dir is the working folder. Default: the root folder.
	Dir string
	// LogFile gets the output of the process, appended, with mode 0600. Empty keeps only the last lines, in memory.
	LogFile string
	// LogLimit is the size in bytes at which LogFile is renamed to LogFile+".1" and a new file begins. Default: 10 MiB.
	LogLimit int64
	// Records is a folder that has a record of the process while it runs, for EndLeftovers. Empty writes no record.
	Records string
	// Ready, if not nil, is called until it returns nil. Then the process is ready. Ready must respect ctx, which ends with the process.
	Ready func(ctx context.Context) error
}

// Exit describes how a process ended.
type Exit struct {
	// Code is the exit code. After a signal it is 128 + the signal's number, as in a shell.
	Code int
	// Signal that ended the process, or 0.
	Signal syscall.Signal
	// At is the time of the end.
	At time.Time
	// Lines are the last lines of the output.
	Lines []string
	// Word is the line of output that most likely tells the reason: the line of a panic, else the last line.
	Word string
}

// Reason describes the end in words, as "exit code 3" or "signal killed".
func (e Exit) Reason() string {
	if e.Signal != 0 {
		return "signal " + e.Signal.String()
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// ExitError means that a process ended although nobody stopped it.
type ExitError struct {
	// Name in the process's Spec.
	Name string
	Exit
}

// Error names the process, how it ended, and Word.
func (e *ExitError) Error() string {
	text := fmt.Sprintf("%s ended with %s", e.Name, e.Reason())
	if e.Word != "" {
		text += ": " + e.Word
	}
	return text
}

// lastWord finds the line that tells why a program ended. After a panic's line come pages of goroutines. A structured log's error may come
// before other lines, too.
func lastWord(lines []string) string {
	last, panicked := "", ""
	for _, line := range slices.Backward(lines) {
		line = strings.TrimSpace(line)
		if last == "" {
			last = line
		}
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			panicked = line
		}
		if m := loggedEnd.FindStringSubmatch(line); m != nil {
			return cmp.Or(panicked, m[1]) + ": " + m[2]
		}
	}
	return cmp.Or(panicked, last)
}

// loggedEnd is a line of a structured log with which a program ends: its message and its error.
var loggedEnd = regexp.MustCompile(`^\{"level":"(?:panic|fatal)".*"msg":"([^"]*)".*"error":"([^"]*)"`)

// Process is a started process. Several goroutines may call its methods.
type Process struct {
	name     string
	identity Identity
	log      *logWriter
	records  string
	done     chan struct{}

	mu      sync.Mutex
	exit    *Exit
	stopped bool // Stop was called, so the end is no error
}

// exitLines is how many of the last lines of output an Exit keeps.
const exitLines = 10

// readyPause is the time between two calls of Spec.Ready.
const readyPause = 25 * time.Millisecond

// Start starts the process and returns when it is ready, or at once if spec has no Ready. ctx bounds this wait. The process runs until
// Stop, until it ends by itself, or until this process ends. If it ends before it is ready, the error has an *ExitError in its tree. If
// it is not ready when ctx ends, Start stops it.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	p, err := start(spec)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	if err := p.awaitReady(ctx, spec.Ready); err != nil {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("start %s: %w", spec.Name, err), p.Stop(stopCtx, time.Second))
	}
	return p, nil
}

// start runs the process and does not wait for anything.
func start(spec Spec) (*Process, error) {
	log, err := newLogWriter(spec.LogFile, spec.LogLimit)
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{
		Path: spec.Path, Args: append([]string{spec.Path}, spec.Args...), Env: spec.Env, Dir: spec.Dir,
		Stdout: log, Stderr: log,
		// A grandchild may keep the output open. Do not wait for it any longer.
		WaitDelay: time.Second,
	}
	if cmd.Env == nil {
		cmd.Env = []string{} // nil would inherit this process's environment
	}
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	identity, err := spawn(cmd)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	p := &Process{name: spec.Name, identity: identity, log: log, records: spec.Records, done: make(chan struct{})}
	if note(p.records, Record{p.name, p.identity}) != nil {
		go p.keepNoted()
	}
	go p.wait(cmd)
	return p, nil
}

// wait kills the rest of the process's group and reaps the process.
func (p *Process) wait(cmd *exec.Cmd) {
	awaitEnd(p.identity.PID)
	// No other group can have this number until its leader is reaped.
	killGroup(p.identity.PID)
	_ = cmd.Wait() // ProcessState has the result
	forget(p.records, p.identity.PID)
	exit := Exit{Code: cmd.ProcessState.ExitCode(), At: time.Now()}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit.Signal = status.Signal()
		exit.Code = 128 + int(exit.Signal)
	}
	exit.Lines, exit.Word = p.log.Last(exitLines), lastWord(p.log.Last(keptLines))
	_ = p.log.Close() // nobody could act on an error, and the last lines are in memory
	p.mu.Lock()
	p.exit = &exit
	p.mu.Unlock()
	close(p.done)
}

// awaitReady calls ready until it returns nil.
func (p *Process) awaitReady(ctx context.Context, ready func(context.Context) error) error {
	if ready == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return &ExitError{p.name, p.mustExit()}
		case <-ctx.Done():
			if p.Exit() != nil {
				return &ExitError{p.name, p.mustExit()}
			}
			return fmt.Errorf("not ready (%w): %w", err, context.Cause(ctx))
		case <-time.After(readyPause):
		}
	}
}

// Done is closed when the process has ended and all its output is in the log.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit describes how the process ended. It is nil while the process runs.
func (p *Process) Exit() *Exit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit
}

func (p *Process) mustExit() Exit {
	<-p.done
	return *p.Exit()
}

// Err is nil while the process runs, and after Stop. If the process ended by itself, Err is an *ExitError, even with exit code 0.
func (p *Process) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exit == nil || p.stopped {
		return nil
	}
	return &ExitError{p.name, *p.exit}
}

// Identity of the process, by which another process can find it.
func (p *Process) Identity() Identity { return p.identity }

// LastLines returns up to n of the last lines of its output.
func (p *Process) LastLines(n int) []string { return p.log.Last(n) }

// stopTimeout bounds a Stop whose caller gave no bound.
const stopTimeout = 10 * time.Second

// Stop sends SIGTERM to the process and its children, kills them after grace, and returns when they have ended. It fails only if ctx ends
// first. Then Stop has killed the processes, but has not seen their end.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	case <-ctx.Done():
	}
	p.signal(syscall.SIGKILL)
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		// Wait a moment for the effect of the kill, even if ctx had ended from the beginning.
		select {
		case <-p.done:
			return nil
		case <-time.After(time.Second):
			return fmt.Errorf("stop %s (process %d): %w", p.name, p.identity.PID, context.Cause(ctx))
		}
	}
}

// signal sends sig to the whole process group, unless it has ended.
func (p *Process) signal(sig syscall.Signal) {
	select {
	case <-p.done:
	default:
		if p.identity.Alive() {
			signalGroup(p.identity.PID, sig)
		}
	}
}

var _ io.Writer = (*logWriter)(nil)
