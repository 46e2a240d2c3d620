//go:build unix

package within

import "syscall"

// dontWait keeps the opening of a pipe from waiting for who writes to it. It means nothing to regular files.
const dontWait = syscall.O_NONBLOCK
