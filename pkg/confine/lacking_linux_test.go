//go:build amd64 || arm64

package confine_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fleetctl/fleetctl/pkg/confine"
)

// everything is all that a system may lack.
const everything = "everything"

// lacking are what a system may not have, or may not allow: namespaces, as in many a container and where a sysctl forbids them, Landlock,
// as before Linux 5.13, and openat2, as before 5.6.
var lacking = map[string][]uint32{
	"namespaces": {unix.SYS_CLONE, unix.SYS_CLONE3},
	"Landlock":   {unix.SYS_LANDLOCK_CREATE_RULESET},
	everything:   {unix.SYS_CLONE, unix.SYS_CLONE3, unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_OPENAT2, unix.SYS_SECCOMP},
}

// What a system lacks is left out, and all else holds: the work is done, and things that go beyond their limits are named.
func TestSystemsThatLackThings(t *testing.T) {
	t.Parallel()
	for name := range lacking {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "CONFINE_TEST_LACKING="+name)
		out, err := cmd.CombinedOutput()
		if text := string(out); err != nil || !strings.Contains(text, "a is fine\n") || !strings.Contains(text, "b: out of memory") ||
			name == everything && !strings.Contains(text, "c: out of time") || !strings.Contains(text, "d is fine\n") {
			t.Errorf("without %s: %v: %s", name, err, text)
		}
	}
}

// lack makes this process one of a system that lacks things, and has tasks run on it.
func lack(name string) int {
	runtime.LockOSThread()
	if err := refuse(lacking[name]); err != nil {
		fmt.Println(err)
		return 1
	}
	l := limits
	l.Time = 5 * time.Second
	p, err := confine.Self(l)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	things := []thing{{Name: "a"}, {Name: "b", Trouble: "memory"}, {Name: "d"}}
	if name == everything {
		things = append(things, thing{Name: "c", Trouble: "time"})
	}
	out, err := working.Run(confine.With(context.Background(), p), things, confine.Needs{})
	fmt.Println(strings.Join(out, "\n"))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// refuse has the kernel answer calls as one that does not know them; of clone only what makes namespaces is refused, clone3 always, for its
// flags cannot be seen.
func refuse(calls []uint32) error {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	unknown := answer(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS))
	program := []unix.SockFilter{load(0)}
	for _, call := range calls {
		if call != unix.SYS_CLONE {
			program = append(program, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 1}, unknown)
		}
	}
	if slices.Contains(calls, unix.SYS_CLONE) {
		program = append(program,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CLONE, Jf: 3},
			load(16),
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: unix.CLONE_NEWUSER | unix.CLONE_NEWNET, Jf: 1},
			answer(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)),
		)
	}
	program = append(program, answer(unix.SECCOMP_RET_ALLOW))
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	code := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&code)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return errno
	}
	return nil
}
