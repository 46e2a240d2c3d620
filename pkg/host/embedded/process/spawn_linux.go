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

	"github.com/fleetctl/fleetctl/pkg/plain"
)

// spawner is a thread that starts all children and never ends. The kernel sends a child the signal of its parent's death when the
// *thread* that started the child ends. Go ends threads at will, so children of any other thread would die one day without a reason.
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

// OnSpawner runs f on the thread that starts all children. They inherit changes that f makes to the thread, such as a filter of system
// calls. A child that f starts may use PR_SET_PDEATHSIG.
func OnSpawner(f func()) {
	done := make(chan struct{})
	spawner() <- func() {
		defer close(done)
		f()
	}
	<-done
}

// spawn starts cmd in a new process group. The kernel kills it when this process ends.
func spawn(cmd *exec.Cmd) (Identity, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	spawner() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return Identity{}, err
	}
	identity, err := findAny(cmd.Process.Pid)
	if err != nil { // the child is not reaped, so findAny finds it even after its end
		_ = cmd.Process.Kill()
		return Identity{}, errors.Join(err, cmd.Wait())
	}
	return identity, nil
}

// startAttached starts cmd in the process group of this process. The kernel kills it when this process ends.
func startAttached(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	spawner() <- func() { started <- cmd.Start() }
	return <-started
}

// awaitEnd returns when the child pid has ended. It does not reap the child.
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

// bootID is the kernel's id of this boot.
var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "" // without it, identities are unique only within one boot
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

// findAny is like find, but also finds a zombie.
func findAny(pid int) (Identity, error) {
	s, err := readStat(pid)
	if err != nil {
		return Identity{}, err
	}
	return Identity{PID: pid, StartTime: s.start, Boot: bootID()}, nil
}

// stat has the used fields of /proc/PID/stat.
type stat struct {
	state   byte
	group   int
	threads int
	start   uint64
}

// ended tells whether the process is a zombie without other threads. state is the state of the first thread alone. While other threads are
// ending, the process still has its files and sockets open.
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

// parseStat parses state, group, number of threads and start time (fields 3, 5, 20 and 22) of /proc/PID/stat. Field 2 is the program's name
// in parentheses. The name may contain parentheses and spaces, so field 3 begins after the last closing parenthesis.
func parseStat(raw []byte) (s stat, err error) {
	const first, group, threads, start = 3, 5, 20, 22
	fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	if len(fields) <= start-first {
		return s, fmt.Errorf("it has only %s", plain.Count(len(fields)+first-1, "field"))
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
