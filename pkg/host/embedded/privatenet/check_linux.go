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

// Check says why Start would fail on this machine, as far as can be told without doing it; nil if nothing speaks against it. The error has
// ErrUnsupported in its tree.
func Check() error {
	for _, check := range []func() error{mayTrace, hasNotifications, hasCapabilities, mayMakeNamespace} {
		if err := check(); err != nil {
			return fmt.Errorf("%w: %w", ErrUnsupported, err)
		}
	}
	return nil
}

// mayTrace says why we may not look at the sockets of our own children: Yama can be set to leave that to root, or to nobody.
func mayTrace() error {
	const file, rootOnly, nobody = "/proc/sys/kernel/yama/ptrace_scope", "2", "3"
	switch scope := setting(file); {
	case scope == nobody, scope == rootOnly && os.Geteuid() != 0:
		return fmt.Errorf("%s is %s", file, scope)
	}
	return nil
}

// hasNotifications says why system calls cannot be taken up.
func hasNotifications() error {
	action := uint32(unix.SECCOMP_RET_USER_NOTIF)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action))) //nolint:gosec // as the kernel wants it
	if errno != 0 {
		return fmt.Errorf("seccomp has no notifications: %w", errno)
	}
	return checkSizes()
}

// hasCapabilities says why a user namespace would be of no use: with AppArmor who makes one may be left without rights in it.
func hasCapabilities() error {
	const file = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
	if scope := setting(file); scope != "" && scope != "0" && os.Geteuid() != 0 {
		return fmt.Errorf("%s is %s", file, scope)
	}
	return nil
}

// mayMakeNamespace starts what is no program in a namespace: that it is none is found out when the namespace is there.
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

// setting is what a file of one line says; empty if there is none.
func setting(file string) string {
	raw, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}
