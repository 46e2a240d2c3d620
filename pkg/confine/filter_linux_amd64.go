package confine

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_X86_64

// forbiddenHere are the forbidden calls that other architectures never had.
var forbiddenHere = []uint32{unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_MKNOD}
