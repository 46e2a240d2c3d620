//go:build windows

package background

import "golang.org/x/sys/windows"

// errNoReader is the error of writing to a pipe that nobody reads.
const errNoReader = windows.ERROR_NO_DATA

// outlive has nothing to do: there is no such signal.
func outlive() (undo func()) { return func() {} }
