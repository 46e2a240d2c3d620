package process

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// With any name of a program, the fields behind the name are read as the kernel wrote them. In any table of sockets, the listening sockets
// are found.
func FuzzProc(f *testing.F) {
	f.Add("manager", 42, uint64(123456), uint16(8443),
		[]byte("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"))
	f.Add(") S 1 7 (", 1, uint64(0), uint16(0), []byte("0: 0100007F:1F90 00000000:0000 0A 0 0 0 0 0 7\n\n:\n"))
	f.Add("a b\n1 (x", -1, uint64(1)<<63, uint16(65535), []byte("1 ) S 1 x\n"))
	f.Fuzz(func(t *testing.T, name string, group int, start uint64, port uint16, other []byte) {
		_, _ = parseStat(other)
		fields := make([]string, 50)
		for i := range fields {
			fields[i] = fmt.Sprint(i + 3)
		}
		fields[0], fields[5-3], fields[22-3] = "S", fmt.Sprint(group), fmt.Sprint(start)
		s, err := parseStat([]byte("77 (" + name + ") " + strings.Join(fields, " ") + "\n"))
		if err != nil || s != (stat{state: 'S', group: group, threads: 20, start: start}) {
			t.Errorf("%q, %d, %d: read as %+v, %v", name, group, start, s, err)
		}
		found := map[string]netip.AddrPort{}
		table := fmt.Appendf(other,
			"\n   9: 00000000000000000000000000000000:%04X 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0\n",
			port)
		addListening(found, table)
		if found["socket:[4711]"] != netip.AddrPortFrom(netip.IPv6Unspecified(), port) {
			t.Errorf("the socket on port %d is not among %v", port, found)
		}
	})
}
