//go:build unix

package background

import (
	"os"
	"os/signal"
	"syscall"
)

// errNoReader is the error of writing to a pipe that nobody reads.
const errNoReader = syscall.EPIPE

// outlive takes the signal, and does nothing about it. Ignoring it instead would be inherited by the programs that this one starts.
func outlive() (undo func()) {
	taken := make(chan os.Signal, 1) // what does not fit in is dropped
	signal.Notify(taken, syscall.SIGPIPE)
	return func() { signal.Stop(taken) }
}
