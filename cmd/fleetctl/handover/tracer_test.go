//go:build e2e

package handover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tracer kills a program at a system call that changes something in a folder: file systems have no proxy that could do it.
type tracer struct {
	dir string
	run *run
	pid int
	// last has the threads that are inside the call after which the program is killed.
	last map[int]bool
}

// syscallInfo is what the kernel tells of a call that a traced thread enters or has left: the same on all processors.
type syscallInfo struct {
	op   uint8
	_    [3]uint8
	_    uint32
	_    [2]uint64
	nr   uint64 // of a call that is entered
	args [6]uint64
	_    uint64
}

const (
	getSyscallInfo = 0x420e
	entered, left  = 1, 2
	callStop       = unix.SIGTRAP | 0x80
)

// changing are the calls that change something, by how they name it: by a descriptor, or by a folder's descriptor and a name.
var (
	changing = map[uint64]string{
		unix.SYS_WRITE: "write", unix.SYS_PWRITE64: "pwrite64", unix.SYS_FTRUNCATE: "ftruncate", unix.SYS_FCHMOD: "fchmod",
		unix.SYS_FSYNC: "fsync",
	}
	changingBelow = map[uint64]string{
		unix.SYS_OPENAT: "openat", unix.SYS_MKDIRAT: "mkdirat", unix.SYS_UNLINKAT: "unlinkat", unix.SYS_RENAMEAT: "renameat",
		unix.SYS_RENAMEAT2: "renameat2", unix.SYS_LINKAT: "linkat", unix.SYS_FCHMODAT: "fchmodat",
	}
)

// traced runs the program as execute does, and counts each call that changes something below dir as a write.
func (w *world) traced(ctx context.Context, t testing.TB, p program, verb, machine, dir string, r *run) outcome {
	t.Helper()
	runtime.LockOSThread() // only the thread that starts a process may trace it
	defer runtime.UnlockOSThread()
	log, err := os.CreateTemp(t.TempDir(), "output")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	cmd := w.prepare(context.WithoutCancel(ctx), t, p, verb, machine, r) // whose end nobody waits for but follow
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &unix.SysProcAttr{Ptrace: true, Setpgid: true}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &tracer{dir: dir, run: r, pid: cmd.Process.Pid, last: map[int]bool{}}
	stop := context.AfterFunc(ctx, c.kill)
	defer stop()
	r.kill = c.kill
	code, err := c.follow()
	if err != nil {
		c.kill()
		t.Fatalf("trace the program: %v", err)
	}
	_ = cmd.Process.Release() // follow has seen its end
	output, err := os.ReadFile(log.Name())
	if err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Errorf("%s %s did not end within %s:\n%s", p.name, verb, p.limit, output)
	}
	return outcome{run: r, code: code, output: string(output), took: time.Since(begin)}
}

func (c *tracer) kill() { _ = unix.Kill(c.pid, unix.SIGKILL) }

// follow lets the program run from call to call until it ends.
func (c *tracer) follow() (code int, err error) {
	var status unix.WaitStatus
	if _, err := unix.Wait4(c.pid, &status, 0, nil); err != nil {
		return 0, err
	}
	const options = unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_EXITKILL
	if err := unix.PtraceSetOptions(c.pid, options); err != nil {
		return 0, err
	}
	stopped, signal := c.pid, 0
	for {
		if err := unix.PtraceSyscall(stopped, signal); err != nil && !errors.Is(err, unix.ESRCH) { // a thread that was killed meanwhile
			return 0, err
		}
		for {
			stopped, err = unix.Wait4(-1, &status, unix.WALL|unix.WNOTHREAD, nil)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				return 0, err
			}
			if status.Stopped() {
				break
			}
			if stopped == c.pid && (status.Exited() || status.Signaled()) {
				return status.ExitStatus(), nil // -1: it was killed
			}
		}
		switch signal = int(status.StopSignal()); unix.Signal(signal) {
		case callStop:
			if signal, err = 0, c.call(stopped); err != nil {
				return 0, err
			}
		case unix.SIGTRAP, unix.SIGSTOP: // a new thread
			signal = 0
		}
	}
}

// call looks at a call of a thread, and kills the program before it or after it.
func (c *tracer) call(thread int) error {
	var info syscallInfo
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, getSyscallInfo, uintptr(thread), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	switch {
	case errno == unix.ESRCH:
		return nil
	case errno != 0:
		return fmt.Errorf("look at a system call: %w", errno)
	case info.op == left && c.last[thread]:
		c.kill()
	case info.op == entered:
		name, path := c.changes(&info)
		if name == "" {
			return nil
		}
		does, counted := c.run.note("folder", name, path)
		if !counted {
			return nil
		}
		c.run.inside.Done()
		if does == killBefore {
			c.kill()
		}
		c.last[thread] = does == killAfter
	}
	return nil
}

// changes returns the name of a call that changes something in the folder, and what it changes.
func (c *tracer) changes(info *syscallInfo) (name, path string) {
	if name = changing[info.nr]; name != "" {
		path = c.open(info.args[0])
	} else if name = changingBelow[info.nr]; name != "" {
		if info.nr == unix.SYS_OPENAT && info.args[2]&(unix.O_CREAT|unix.O_TRUNC) == 0 {
			return "", ""
		}
		if path = c.text(info.args[1]); !filepath.IsAbs(path) && int32(info.args[0]) != unix.AT_FDCWD {
			path = filepath.Join(c.open(info.args[0]), path)
		}
	}
	if path != c.dir && !strings.HasPrefix(path, c.dir+"/") {
		return "", ""
	}
	return name, path
}

func (c *tracer) open(descriptor uint64) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", c.pid, int32(descriptor))) // none: the call will fail
	return path
}

// text reads a path of the program.
func (c *tracer) text(at uint64) string {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", c.pid))
	if err != nil {
		return ""
	}
	defer memory.Close()
	content := make([]byte, unix.PathMax)
	n, _ := memory.ReadAt(content, int64(at)) // less, at the end of a mapping
	text, _, _ := strings.Cut(string(content[:n]), "\x00")
	return text
}
