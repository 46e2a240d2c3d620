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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
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

// listensOnLoopback: with Cluster API, the docker provider with a cluster of its own, and Flux, nothing of the host can be reached from
// another machine, but what docs/embedded.md says no flag can narrow.
func listensOnLoopback(t *testing.T, s *story) {
	all := listeners(t, hostFamily(t, s.base, ""))
	inside := slices.ContainsFunc(all, func(l listener) bool { return l.ip.IsLoopback() })
	outside := slices.ContainsFunc(all, func(l listener) bool { return !l.ip.IsLoopback() })
	if !inside || !outside { // the API server, and the managers' webhooks
		t.Fatalf("there must be some listeners on loopback and some that are not: %v", all)
	}
	for _, l := range all {
		if !l.ip.IsLoopback() && !cannotBeNarrowed(l) {
			t.Errorf("%s can be reached from other machines, and docs/embedded.md does not say so: %s", l, l.proc.command)
		}
	}
}

// portOnlyFlag matches the flags that docs/embedded.md names: they take a port and no address.
var portOnlyFlag = regexp.MustCompile(`(?:^| )--?(?:webhook-port|secure-port|healthz-port)[= ](\d+)`)

// cannotBeNarrowed tells whether docs/embedded.md names the listener among those that are open on all addresses.
func cannotBeNarrowed(l listener) bool {
	for _, flag := range portOnlyFlag.FindAllStringSubmatch(l.proc.command, -1) {
		if flag[1] == strconv.Itoa(l.port) {
			return true
		}
	}
	const debugServer, firstAPIServer = 19000, 20000 // of the in-memory clusters
	return strings.Contains(l.proc.dir, "capd-controller-manager") && (l.port == debugServer || l.port >= firstAPIServer)
}

// listeners are those of the processes. What ends meanwhile has none.
func listeners(t *testing.T, processes map[int]proc) []listener {
	t.Helper()
	var out []listener
	for pid, p := range processes {
		own := socketsOf(t, pid)
		for _, table := range []string{"tcp", "tcp6"} { // of the process, which may be in a network of its own
			content, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
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

// parseSocket reads a line of /proc/net/tcp or tcp6: number, local address, remote address, state, …, inode as the tenth field. Addresses are
// words of 32 bits in the machine's own order, which is little-endian on all that the embedded host runs on.
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
