package process

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

func (i Identity) kill() error { return i.Signal(syscall.SIGKILL) }

// leftOf are the running processes of the group that leader has, or had.
func leftOf(leader Identity, mark string) ([]Identity, error) {
	if leader.Boot != bootID() {
		return nil, nil
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	alive := leader.Alive()
	var left []Identity
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		s, err := readStat(pid)
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if s.group != leader.PID || s.ended() || s.start < leader.StartTime {
			continue
		}
		if alive || hasInEnvironment(pid, mark) {
			left = append(left, Identity{PID: pid, StartTime: s.start, Boot: bootID()})
		}
	}
	return left, nil
}

// hasInEnvironment looks at the environment that a process was started with; nobody else's can be read.
func hasInEnvironment(pid int, mark string) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && bytes.Contains(raw, []byte(mark))
}

// Listener finds the process that listens on a TCP port of our network, and what the kernel calls its program. It is not found where
// nobody does, or where it is another user's, whose files we may not see.
func Listener(port int) (id Identity, program string, ok bool) {
	sockets, err := listening(os.Getpid(), port)
	if err != nil || len(sockets) == 0 {
		return id, "", false
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return id, "", false
	}
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || !hasOpen(pid, sockets) {
			continue
		}
		if id, err := find(pid); err == nil {
			name, _ := os.ReadFile(filepath.Join(dir, "comm"))
			return id, string(bytes.TrimSpace(name)), true
		}
	}
	return id, "", false
}

// Listens tells whether the process has a TCP socket that listens on port, on any address.
func (i Identity) Listens(port int) bool {
	sockets, err := listening(i.PID, port)
	return err == nil && len(sockets) > 0 && hasOpen(i.PID, sockets) && i.Alive()
}

// hasOpen tells whether a process has one of the sockets.
func hasOpen(pid int, sockets map[string]bool) bool {
	links, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
	if err != nil {
		return false
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && sockets[to] {
			return true
		}
	}
	return false
}

// listening are the sockets, by the name that they have as a file, that listen on port in the process's network.
func listening(pid, port int) (map[string]bool, error) {
	found := map[string]bool{}
	for _, table := range []string{"tcp", "tcp6"} {
		raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/net/" + table)
		if errors.Is(err, os.ErrNotExist) && table == "tcp6" {
			continue // a kernel without IPv6
		}
		if err != nil {
			return nil, err
		}
		addListening(found, raw, port)
	}
	return found, nil
}

// addListening adds those of one table, the content of /proc/PID/net/tcp or tcp6.
func addListening(found map[string]bool, table []byte, port int) {
	const (
		local, state, inode = 1, 3, 9 // columns
		listens             = "0A"
	)
	for line := range bytes.Lines(table) {
		f := bytes.Fields(line)
		if len(f) <= inode || string(f[state]) != listens {
			continue
		}
		at, err := strconv.ParseUint(string(f[local][bytes.LastIndexByte(f[local], ':')+1:]), 16, 16)
		if err == nil && int(at) == port {
			found["socket:["+string(f[inode])+"]"] = true
		}
	}
}
