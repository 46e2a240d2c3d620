//go:build unix

package background

import (
	"os"
	"os/signal"
	"syscall"
)

// errNoReader is the error of writing to a pipe that nobody reads.
const errNoReader = syscall.EPIPE

// outlive receives SIGPIPE and does nothing with it. signal.Ignore would not do: programs that this process starts would inherit it.
func outlive() (undo func()) {
	taken := make(chan os.Signal, 1) // nobody reads it; the runtime drops further signals
	signal.Notify(taken, syscall.SIGPIPE)
	return func() { signal.Stop(taken) }
}
