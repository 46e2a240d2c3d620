//go:build e2e

package e2e

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/privatenet"
)

// listener is a TCP socket that a process waits for connections on.
type listener struct {
	pid  int
	proc proc
	ip   net.IP
	port int
}

func (l listener) String() string {
	return fmt.Sprintf("process %d (%s) on %s", l.pid, programName(l.proc), net.JoinHostPort(l.ip.String(), strconv.Itoa(l.port)))
}

// outOfReach: with Cluster API, the docker provider with a cluster of its own, and Flux, other users of this machine can connect to what
// docs/embedded.md names, and to nothing else of the host; on other machines nobody can.
func outOfReach(t *testing.T, s *story) {
	if err := privatenet.Check(); err != nil {
		t.Fatalf("this machine lets its users reach what the host listens on, as docs/embedded.md says: %v", err)
	}
	family := hostFamily(t, s.base, "")
	seen := map[string]bool{}
	for _, l := range listeners(t, family) {
		what := inReach(l)
		if !l.ip.IsLoopback() || what == "" {
			t.Errorf("%s can be reached, and docs/embedded.md does not say so: %s", l, l.proc.command)
		}
		seen[what] = true
	}
	for _, what := range []string{"API server", "debug server", "in-memory cluster"} {
		if !seen[what] {
			t.Errorf("nobody listens as %s: %v", what, seen)
		}
	}
	hidden := hiddenListeners(t, family)
	for _, program := range []string{"etcd", "source-controller", "notification-controller", "capi-controller-manager"} {
		if !slices.ContainsFunc(hidden, func(l listener) bool { return strings.Contains(l.proc.dir+" "+l.proc.command, program) }) {
			t.Errorf("%s does not listen on the host's loopback, where these do: %v", program, hidden)
		}
	}
}

// inReach says what docs/embedded.md calls a listener that stays on the machine's loopback; empty if it names none.
func inReach(l listener) string {
	const debugServer, firstAPIServer, lastAPIServer = 19000, 20000, 24999
	switch inMemory := strings.Contains(l.proc.dir, "capd-controller-manager"); {
	case programName(l.proc) == "kube-apiserver":
		return "API server"
	case strings.Contains(l.proc.command, " git-serve "):
		return "git server" // wants a password
	case inMemory && l.port == debugServer:
		return "debug server"
	case inMemory && l.port >= firstAPIServer && l.port <= lastAPIServer:
		return "in-memory cluster"
	}
	return ""
}

// hiddenListeners are those on the host's own loopback: the network of that process of its family which is in another one than we are.
func hiddenListeners(t *testing.T, family map[int]proc) []listener {
	t.Helper()
	return listenersIn(t, networkHelper(t, family), family)
}

// networkHelper is that process of a host's family which is in another network than we are.
func networkHelper(t *testing.T, family map[int]proc) int {
	t.Helper()
	ours, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for pid := range family {
		if theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)); err == nil && theirs != ours {
			return pid
		}
	}
	t.Fatal("no process is in a network of its own")
	return 0
}

// listeners are those of the processes, in the network that each is in. What ends meanwhile has none.
func listeners(t *testing.T, processes map[int]proc) []listener {
	t.Helper()
	var out []listener
	for pid, p := range processes {
		out = append(out, listenersIn(t, pid, map[int]proc{pid: p})...)
	}
	return out
}

// listenersIn are those of the processes in the network that the process in is in.
func listenersIn(t *testing.T, in int, processes map[int]proc) []listener {
	t.Helper()
	var out []listener
	for pid, p := range processes {
		own := socketsOf(t, pid)
		for _, table := range []string{"tcp", "tcp6"} {
			content, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", in, table))
			if err != nil {
				continue
			}
			for i, line := range lines(string(content)) {
				if i == 0 { // the heading
					continue
				}
				ip, port, inode, listens := parseSocket(t, line)
				if listens && own[inode] {
					out = append(out, listener{pid, p, ip, port})
				}
			}
		}
	}
	return out
}

// socketsOf are the inodes of the sockets that a process has open.
func socketsOf(t *testing.T, pid int) map[string]bool {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, e := range entries {
		target, _ := os.Readlink(filepath.Join(dir, e.Name())) // closed meanwhile
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			out[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return out
}

// parseSocket reads a line of /proc/net/tcp or tcp6: number, local address, remote address, state, …, inode as the tenth field. Addresses
// are words of 32 bits in the machine's own order, which is little-endian on all that the embedded host runs on.
func parseSocket(t *testing.T, line string) (ip net.IP, port int, inode string, listens bool) {
	t.Helper()
	const local, state, inodeField, listening = 1, 3, 9, "0A"
	fields := strings.Fields(line)
	if len(fields) <= inodeField {
		t.Fatalf("/proc/net/tcp has a line like %q", line)
	}
	address, number, _ := strings.Cut(fields[local], ":")
	raw, err := hex.DecodeString(address)
	wide, portErr := strconv.ParseUint(number, 16, 16)
	if err = errors.Join(err, portErr); err != nil || len(raw)%4 != 0 {
		t.Fatalf("/proc/net/tcp has a line like %q: %v", line, err)
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	return raw, int(wide), fields[inodeField], fields[state] == listening
}
