// Package background holds what fleetctl's two background programs share: the supervisor of an embedded host and the local Git server.
// A command starts such a program, and the program outlives the command, however the command ends.
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

// Outlive makes a write to a pipe without a reader an ordinary error. By default, SIGPIPE ends a Go program that writes to such a standard
// output or error, so a killed command would end the background program that it had started. Programs that this process starts keep the
// default. undo restores the default for this process.
func Outlive() (undo func()) { return outlive() }

// Greet writes hello as one line of JSON to the command that started this program, and that waits for the line. A pipe without a reader is
// no error: then the command has ended, and the background program goes on.
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

// ErrSilent means that a program ended, or closed its standard output, before it wrote a whole line.
var ErrSilent = errors.New("ended at once")

// Hear waits for the line that Greet writes and returns it. It always closes from, because the program writes nothing after that line.
// Errors: ErrSilent, and the cause of ctx's end.
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

// Environment returns the named variables that are set, as NAME=VALUE. A program that runs for weeks gets only the variables that it needs,
// so it gets no tokens and no agent sockets.
func Environment(names ...string) []string {
	var env []string
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// maxLog is the size in bytes above which OpenLog renames a log.
const maxLog = 1 << 20

// OpenLog opens the log at path for appending, with mode 0600. A log larger than 1 MiB is first renamed to path.1 and replaces the log that
// had this name.
func OpenLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}
