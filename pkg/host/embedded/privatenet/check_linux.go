package privatenet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Check returns the reason why Start would fail on this machine, with ErrUnsupported in the error's tree. It returns nil if it finds
// none. It does not try everything that Start does.
func Check() error {
	for _, check := range []func() error{mayTrace, hasNotifications, hasCapabilities, mayMakeNamespace} {
		if err := check(); err != nil {
			return fmt.Errorf("%w: %w", ErrUnsupported, err)
		}
	}
	return nil
}

// mayTrace returns an error if this process may not access its children's sockets. Yama can leave that to root, or to nobody.
func mayTrace() error {
	const file, rootOnly, nobody = "/proc/sys/kernel/yama/ptrace_scope", "2", "3"
	switch scope := setting(file); {
	case scope == nobody, scope == rootOnly && os.Geteuid() != 0:
		return fmt.Errorf("%s is %s", file, scope)
	}
	return nil
}

// hasNotifications returns an error if the kernel has no seccomp notifications.
func hasNotifications() error {
	action := uint32(unix.SECCOMP_RET_USER_NOTIF)
	//nolint:gosec // as the kernel wants it
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	if errno != 0 {
		return fmt.Errorf("seccomp has no notifications: %w", errno)
	}
	return checkSizes()
}

// hasCapabilities returns an error if a user namespace would give no capabilities, as AppArmor can be configured.
func hasCapabilities() error {
	const file = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
	if scope := setting(file); scope != "" && scope != "0" && os.Geteuid() != 0 {
		return fmt.Errorf("%s is %s", file, scope)
	}
	return nil
}

// mayMakeNamespace tries to start a file that is not a program in a new namespace. The kernel makes the namespace first, so an error about
// the program proves that the namespace was made.
func mayMakeNamespace() error {
	kinds := []func() *syscall.SysProcAttr{userNamespace}
	if os.Geteuid() == 0 {
		kinds = append(kinds, rootNamespace)
	}
	var errs []error
	for _, kind := range kinds {
		cmd := &exec.Cmd{Path: "/proc/self/status", Args: []string{"none"}, Env: []string{}, SysProcAttr: kind()}
		err := cmd.Start()
		if errors.Is(err, unix.EACCES) {
			return nil
		}
		errs = append(errs, fmt.Errorf("make a network namespace: %w", err))
	}
	return errors.Join(errs...)
}

// setting reads a file of one line. It returns "" if the file is missing.
func setting(file string) string {
	raw, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}
