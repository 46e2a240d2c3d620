package syswatch

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// watchedHere are the calls that only this processor still has.
func watchedHere() []int { return []int{unix.SYS_RENAMEAT} }

// pathFirst tells whether the first argument of the call is a path. Such calls have no argument with the folder that the path is relative
// to.
func pathFirst(number int) bool { return number == unix.SYS_EXECVE || number == unix.SYS_TRUNCATE }

// openFlags are the flags of a call that opens a file by its path; false for any other call.
func openFlags(number int, args [6]uint64) (uint64, bool) {
	if number == unix.SYS_OPENAT {
		return args[2], true
	}
	return 0, false
}
