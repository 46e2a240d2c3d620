// Package background is what our programs in the background have in common: the supervisor of an embedded host and the local Git server.
// They are started by a command and outlive it, however it ends.
package background

import (
	"encoding/json"
	"errors"
	"io"
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
