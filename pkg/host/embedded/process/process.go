// Package process starts and supervises child processes. Each child has its own process group, ends with its parent however the parent
// ends, and writes its output to a log of bounded size. A process that later gets the same number is not mistaken for the child. It knows
// nothing of what it runs. It works on Linux; elsewhere Start returns an error.
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

// Spec says what to run. Name and Path are needed.
type Spec struct {
	// Name is what errors and statuses call it.
	Name string
	// Path of the program; it is not looked up in PATH.
	Path string
	// Args without the program's own name. Everybody on the machine can read them: nothing secret.
	Args []string
	// Env is the whole environment ("KEY=value"): nothing is inherited.
	Env []string
	// Dir to start in. Default: the root folder.
	Dir string
	// LogFile gets what the process writes to stdout and stderr, appended, mode 0600; empty keeps the last lines only.
	LogFile string
	// LogLimit is the size at which LogFile becomes LogFile+".1" and a new one begins. Default: 10 MiB.
	LogLimit int64
	// Records is a folder that remembers the process while it runs, for EndLeftovers; empty is none.
	Records string
	// Ready, if not nil, is asked again and again until it returns nil: then the process is ready. It must respect ctx, which
	// ends with the process.
	Ready func(ctx context.Context) error
}

// Exit is how a process ended.
type Exit struct {
	// Code is the exit code; 128 + the signal's number if one ended it, as a shell reports it.
	Code int
	// Signal that ended it, or 0.
	Signal syscall.Signal
	// At is when.
	At time.Time
	// Lines are the last ones of its output.
	Lines []string
	// Word is the line that tells why, as far as one can tell: that of a panic, else the last one.
	Word string
}

// Reason is the end in words: "exit code 3", "signal killed".
func (e Exit) Reason() string {
	if e.Signal != 0 {
		return "signal " + e.Signal.String()
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// ExitError says that a process ended by itself.
type ExitError struct {
	// Name of its Spec.
	Name string
	Exit
}

// Error names the process, how it ended and the line that tells why.
func (e *ExitError) Error() string {
	text := fmt.Sprintf("%s ended with %s", e.Name, e.Reason())
	if e.Word != "" {
		text += ": " + e.Word
	}
	return text
}

// lastWord finds the line that tells why a program ended: behind a panic's come pages of goroutines, and what structured logs call
// the error stands before it.
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

// Process is one that was started. Its methods can be called by several goroutines.
type Process struct {
	name     string
	identity Identity
	log      *logWriter
	records  string
	done     chan struct{}

	mu      sync.Mutex
	exit    *Exit
	stopped bool // Stop was called: the end is wanted
}

// exitLines is how many of the last lines of output an Exit keeps.
const exitLines = 10

// readyPause is the time between two questions to Spec.Ready.
const readyPause = 25 * time.Millisecond

// Start runs the process and returns once it is ready, or at once if spec has no Ready. ctx bounds that wait and not the
// life of the process, which is until Stop, its own end, or the end of ours. A process that ends before it is ready is an
// *ExitError in the error's tree; one that is not ready in time is stopped.
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
		// A grandchild that keeps the output open must not keep us waiting.
		WaitDelay: time.Second,
	}
	if cmd.Env == nil {
		cmd.Env = []string{} // nil would mean ours
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

// wait reaps the process, and what is left of its group.
func (p *Process) wait(cmd *exec.Cmd) {
	awaitEnd(p.identity.PID)
	// As long as its leader is not reaped nobody else can have the group's number.
	killGroup(p.identity.PID)
	_ = cmd.Wait() // its state says it all
	forget(p.records, p.identity.PID)
	exit := Exit{Code: cmd.ProcessState.ExitCode(), At: time.Now()}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit.Signal = status.Signal()
		exit.Code = 128 + int(exit.Signal)
	}
	exit.Lines, exit.Word = p.log.Last(exitLines), lastWord(p.log.Last(keptLines))
	_ = p.log.Close() // nobody is left to tell, and the lines are in memory
	p.mu.Lock()
	p.exit = &exit
	p.mu.Unlock()
	close(p.done)
}

// awaitReady asks ready until it says yes.
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

// Exit is how it ended, or nil while it runs.
func (p *Process) Exit() *Exit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit
}

func (p *Process) mustExit() Exit {
	<-p.done
	return *p.Exit()
}

// Err is nil while the process runs and when Stop ended it; otherwise an *ExitError, also for exit code 0.
func (p *Process) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exit == nil || p.stopped {
		return nil
	}
	return &ExitError{p.name, *p.exit}
}

// Identity of the process, to find it again from another one.
func (p *Process) Identity() Identity { return p.identity }

// LastLines returns up to n of the last lines of its output.
func (p *Process) LastLines(n int) []string { return p.log.Last(n) }

// stopTimeout bounds a Stop that nobody waits for.
const stopTimeout = 10 * time.Second

// Stop asks the process and its children to end, kills them after grace, and returns when they are gone. It fails only when
// ctx ends before that: then they have been killed and not yet seen to end.
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
		// It has been killed: give it the moment that this takes, also when there was no time to begin with.
		select {
		case <-p.done:
			return nil
		case <-time.After(time.Second):
			return fmt.Errorf("stop %s (process %d): %w", p.name, p.identity.PID, context.Cause(ctx))
		}
	}
}

// signal sends sig to the whole group, unless it is gone.
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
