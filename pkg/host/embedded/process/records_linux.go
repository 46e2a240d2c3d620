package process

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

func (i Identity) kill() error { return i.Signal(syscall.SIGKILL) }

// leftOf returns the running processes of leader's group. leader may have ended.
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

// hasInEnvironment tells whether the initial environment of a process contains mark. It is false for processes of other users, whose
// environment cannot be read.
func hasInEnvironment(pid int, mark string) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && bytes.Contains(raw, []byte(mark))
}

// Listener tells whether a program listens on a TCP port, in the network of this process or in the networks of the processes beside. It
// returns the process and the kernel's name of its program. Both are empty for a process of another user, whose files cannot be read.
func Listener(port int, beside ...int) (id Identity, program string, listens bool) {
	sockets := map[string]bool{}
	for _, pid := range append(beside, os.Getpid()) {
		found, err := listening(pid)
		if err != nil {
			continue // the process has ended
		}
		for socket, at := range found {
			if int(at.Port()) == port {
				sockets[socket] = true
			}
		}
	}
	if len(sockets) == 0 {
		return id, "", false
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return id, "", true
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
	return id, "", true
}

// Listens tells whether the process has a TCP socket that listens on port, on any address.
func (i Identity) Listens(port int) bool {
	return slices.ContainsFunc(i.Listening(), func(at netip.AddrPort) bool { return int(at.Port()) == port })
}

// Listening returns the addresses on which the process waits for TCP connections, sorted, in the network in which it was started. It
// returns none if the process has ended.
func (i Identity) Listening() []netip.AddrPort {
	sockets, err := listening(i.PID)
	if err != nil || len(sockets) == 0 {
		return nil
	}
	var at []netip.AddrPort
	for _, socket := range openFiles(i.PID) {
		if address, ok := sockets[socket]; ok {
			at = append(at, address)
		}
	}
	if !i.Alive() {
		return nil
	}
	slices.SortFunc(at, netip.AddrPort.Compare)
	return slices.Compact(at)
}

// hasOpen tells whether a process has one of the sockets open.
func hasOpen(pid int, sockets map[string]bool) bool {
	return slices.ContainsFunc(openFiles(pid), func(file string) bool { return sockets[file] })
}

// openFiles returns the open files of a process, by the kernel's names for them.
func openFiles(pid int) []string {
	links, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
	if err != nil {
		return nil
	}
	files := make([]string, 0, len(links))
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil {
			files = append(files, to)
		}
	}
	return files
}

// listening returns the listening sockets in the process's network: from the socket's file name to its address.
func listening(pid int) (map[string]netip.AddrPort, error) {
	found := map[string]netip.AddrPort{}
	for _, table := range []string{"tcp", "tcp6"} {
		raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/net/" + table)
		if errors.Is(err, os.ErrNotExist) && table == "tcp6" {
			continue // a kernel without IPv6
		}
		if err != nil {
			return nil, err
		}
		addListening(found, raw)
	}
	return found, nil
}

// addListening adds the listening sockets of one table, the content of /proc/PID/net/tcp or tcp6.
func addListening(found map[string]netip.AddrPort, table []byte) {
	const (
		local, state, inode = 1, 3, 9 // columns
		listens             = "0A"
	)
	for line := range bytes.Lines(table) {
		f := bytes.Fields(line)
		if len(f) <= inode || string(f[state]) != listens {
			continue
		}
		if at, ok := parseAddress(string(f[local])); ok {
			found["socket:["+string(f[inode])+"]"] = at
		}
	}
}

// parseAddress parses an address of such a table: 32-bit words in the machine's byte order, and the port.
func parseAddress(text string) (at netip.AddrPort, ok bool) {
	const word = 4
	address, number, _ := strings.Cut(text, ":")
	port, err := strconv.ParseUint(number, 16, 16)
	raw, hexErr := hex.DecodeString(address)
	if errors.Join(err, hexErr) != nil || len(raw)%word != 0 {
		return at, false
	}
	for i := 0; i < len(raw); i += word {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	ip, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(ip, uint16(port)), ok
}
