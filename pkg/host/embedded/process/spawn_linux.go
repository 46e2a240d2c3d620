package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// spawner is a thread that starts all children and never ends. The kernel sends the signal of a parent's death when the
// *thread* that made the child ends, and Go ends threads at will: from any other thread, children would die one day without
// a reason.
var spawner = sync.OnceValue(func() chan<- func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread() // never unlocked
		for job := range jobs {
			job()
		}
	}()
	return jobs
})

// OnSpawner runs f on the thread that starts all children: they inherit what f changes of it, a filter of system calls for one, and a child
// that f starts may ask the kernel for a signal at our end.
func OnSpawner(f func()) {
	done := make(chan struct{})
	spawner() <- func() {
		defer close(done)
		f()
	}
	<-done
}

// spawn starts cmd in a group of its own; it is killed when our process ends.
func spawn(cmd *exec.Cmd) (Identity, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	spawner() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return Identity{}, err
	}
	identity, err := findAny(cmd.Process.Pid)
	if err != nil { // not reaped: it is there even if it has ended already
		_ = cmd.Process.Kill()
		return Identity{}, errors.Join(err, cmd.Wait())
	}
	return identity, nil
}

// startAttached starts cmd in our own group; it is killed when our process ends.
func startAttached(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	spawner() <- func() { started <- cmd.Start() }
	return <-started
}

// awaitEnd returns when our child pid has ended, and leaves it to be reaped.
func awaitEnd(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

func signalGroup(pgid int, sig syscall.Signal) { _ = syscall.Kill(-pgid, sig) }

func killGroup(pgid int) { signalGroup(pgid, syscall.SIGKILL) }

// bootID is read once: it does not change while we run.
var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "" // a system that hides it: identities are unique within one boot only
	}
	return strings.TrimSpace(string(id))
})

// find returns the identity of a process that runs.
func find(pid int) (Identity, error) {
	s, err := readStat(pid)
	if err != nil {
		return Identity{}, err
	}
	if s.ended() {
		return Identity{}, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	return Identity{PID: pid, StartTime: s.start, Boot: bootID()}, nil
}

// findAny is find, also for one that has ended and waits to be reaped.
func findAny(pid int) (Identity, error) {
	s, err := readStat(pid)
	if err != nil {
		return Identity{}, err
	}
	return Identity{PID: pid, StartTime: s.start, Boot: bootID()}, nil
}

// stat is what the kernel tells of a process.
type stat struct {
	state   byte
	group   int
	threads int
	start   uint64
}

// ended tells whether it only waits to be reaped. The state is that of the first thread alone: where others are still ending, the process has
// its files open, and its sockets, too.
func (s stat) ended() bool { return (s.state == 'Z' || s.state == 'X') && s.threads <= 1 }

// readStat reads /proc/PID/stat.
func readStat(pid int) (stat, error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return stat{}, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	if err != nil {
		return stat{}, err
	}
	s, err := parseStat(raw)
	if err != nil {
		return stat{}, fmt.Errorf("read /proc/%d/stat: %w", pid, err)
	}
	return s, nil
}

// parseStat takes state, group, number of threads and start time, fields 3, 5, 20 and 22, from the content of /proc/PID/stat. Field 2 is the program's
// name in parentheses and may hold anything, parentheses and spaces too: what follows the last one is what counts.
func parseStat(raw []byte) (s stat, err error) {
	const first, group, threads, start = 3, 5, 20, 22
	fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	if len(fields) <= start-first {
		return s, fmt.Errorf("it has %d fields", len(fields)+first-1)
	}
	s.state = fields[0][0]
	if s.group, err = strconv.Atoi(string(fields[group-first])); err != nil {
		return s, err
	}
	if s.threads, err = strconv.Atoi(string(fields[threads-first])); err != nil {
		return s, err
	}
	s.start, err = strconv.ParseUint(string(fields[start-first]), 10, 64)
	return s, err
}
