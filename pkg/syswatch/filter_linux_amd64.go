package syswatch

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// watchedHere are the older calls, which take no folder.
func watchedHere() []int {
	return []int{
		unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_UNLINK, unix.SYS_MKDIR, unix.SYS_RMDIR, unix.SYS_RENAME, unix.SYS_RENAMEAT, unix.SYS_SYMLINK,
		unix.SYS_LINK, unix.SYS_MKNOD, unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN,
	}
}

// pathFirst tells whether the first argument of the call is a path. Such calls have no argument with the folder that the path is relative
// to.
func pathFirst(number int) bool {
	switch number {
	case unix.SYS_EXECVE, unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_UNLINK, unix.SYS_MKDIR, unix.SYS_RMDIR, unix.SYS_RENAME,
		unix.SYS_SYMLINK, unix.SYS_LINK,
		unix.SYS_MKNOD, unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_TRUNCATE:
		return true
	}
	return false
}

// openFlags are the flags of a call that opens a file by its path; false for any other call.
func openFlags(number int, args [6]uint64) (uint64, bool) {
	switch number {
	case unix.SYS_OPEN:
		return args[1], true
	case unix.SYS_OPENAT:
		return args[2], true
	}
	return 0, false
}
