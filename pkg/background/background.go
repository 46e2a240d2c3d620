// Package background is what our programs in the background have in common: the supervisor of an embedded host and the local Git server.
// They are started by a command and outlive it, however it ends.
package background

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Outlive makes writing to a pipe whose reader is gone an error like others. Without it a Go program ends by SIGPIPE when it writes to such
// a standard output or error: a command that was killed would take along what it had started. Programs that this one starts
// keep the system's behaviour. The result gives the old behaviour back.
func Outlive() (undo func()) { return outlive() }

// Greet tells the command that waits for this program how it went, in one line of JSON. That nobody listens any more is no error: the
// command has ended, and what it started goes on.
func Greet(to io.Writer, hello any) error {
	line, err := json.Marshal(hello)
	if err != nil {
		return err
	}
	if _, err := to.Write(append(line, '\n')); err != nil && !errors.Is(err, errNoReader) {
		return err
	}
	return nil
}

// ErrSilent says that a program ended, or closed its standard output, before it had said a line.
var ErrSilent = errors.New("ended at once")

// Hear waits for the line that Greet writes, and closes from: the program says no more. Errors: ErrSilent, and why ctx ended.
func Hear(ctx context.Context, from io.ReadCloser) (string, error) {
	type result struct {
		line string
		err  error
	}
	got := make(chan result, 1)
	go func() {
		line, err := bufio.NewReader(from).ReadString('\n')
		got <- result{line, err}
	}()
	defer func() { _ = from.Close() }()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case r := <-got:
		if r.err != nil {
			return "", fmt.Errorf("%w: %w", ErrSilent, r.err)
		}
		return r.line, nil
	}
}

// Environment has the variables of those names, as far as they are set. A program that runs for weeks should not know more, such as tokens
// and agents.
func Environment(names ...string) []string {
	var env []string
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// maxLog is the size from which on a log is put aside.
const maxLog = 1 << 20

// OpenLog opens the log of a program for appending. A large one is put aside first.
func OpenLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}
