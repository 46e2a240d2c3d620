package process

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// orphan is a grandchild that a killed parent has left: the kernel took its own child along, which does not end the group.
func orphan(t *testing.T, records, mark string) Identity {
	t.Helper()
	parent := mustStart(t, spec("parent", "family", records, mark))
	waitFor(t, "the child", func() bool { return len(parent.LastLines(1)) == 1 })
	pid, err := strconv.Atoi(parent.LastLines(1)[0])
	if err != nil {
		t.Fatal(err)
	}
	leader, err := Find(pid)
	if err != nil {
		t.Fatal(err)
	}
	var found Identity
	waitFor(t, "the grandchild", func() bool {
		group, err := leftOf(leader, "")
		for _, id := range group {
			if id != leader {
				found = id
			}
		}
		return err == nil && len(group) >= 3 // a shell and its sleep
	})
	if err := parent.Identity().Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-parent.Done()
	waitFor(t, "the end of the child", func() bool { return !leader.Alive() })
	t.Cleanup(func() { _ = found.Signal(syscall.SIGKILL) })
	return found
}

func TestLeftoversOfAKilledParentAreEnded(t *testing.T) {
	records, mark := filepath.Join(t.TempDir(), "processes"), t.TempDir()+"/"
	left := orphan(t, records, mark)
	if !left.Alive() {
		t.Fatal("nothing is left over: the test shows nothing")
	}
	if ended, err := EndLeftovers(t.Context(), records, "/of/another/host/"); err != nil || len(ended) > 0 || !left.Alive() {
		t.Fatalf("what is not marked as ours was ended: %v, %v", ended, err)
	}
	left = orphan(t, records, mark)
	ended, err := EndLeftovers(t.Context(), records, mark)
	if err != nil || len(ended) < 2 || !strings.Contains(ended[0], "test family") {
		t.Errorf("ended %v, %v", ended, err)
	}
	if left.Alive() {
		t.Error("it lives on")
	}
	if files, err := os.ReadDir(records); err != nil || len(files) > 0 {
		t.Errorf("records stay: %v, %v", files, err)
	}
	if ended, err := EndLeftovers(t.Context(), filepath.Join(records, "none"), mark); err != nil || len(ended) > 0 {
		t.Errorf("without records: %v, %v", ended, err)
	}
}

func TestLeaderThatRunsIsEndedWithItsRecord(t *testing.T) {
	s := spec("family")
	s.Records = t.TempDir()
	p := mustStart(t, s)
	waitFor(t, "the grandchild", func() bool { return len(p.LastLines(1)) == 1 })
	if ended, err := EndLeftovers(t.Context(), s.Records, "not in its environment"); err != nil || len(ended) < 2 {
		t.Errorf("ended %v, %v", ended, err)
	}
	<-p.Done()
	if exit := p.Exit(); exit.Signal != syscall.SIGKILL {
		t.Errorf("it ended with %s", exit.Reason())
	}
}

func TestRecordLastsAsLongAsTheProcess(t *testing.T) {
	s := spec("sleep")
	s.Records = t.TempDir()
	p := mustStart(t, s)
	raw, err := os.ReadFile(recordFile(s.Records, p.Identity().PID))
	if r, ok := decodeRecord(raw); err != nil || !ok || r.Identity != p.Identity() || r.Name != s.Name {
		t.Errorf("record %s, %v", raw, err)
	}
	if running, err := Running(s.Records); err != nil || len(running) != 1 || running[0].Identity != p.Identity() {
		t.Errorf("running: %v, %v", running, err)
	}
	if err := p.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(s.Records); err != nil || len(files) > 0 {
		t.Errorf("after its end: %v, %v", files, err)
	}
}

// TestRecordIsMadeUpFor has a folder that cannot be made at first, as on a full disk.
func TestRecordIsMadeUpFor(t *testing.T) {
	s := spec("sleep")
	s.Records = filepath.Join(t.TempDir(), "processes")
	if err := os.WriteFile(s.Records, nil, 0o600); err != nil { // in its way
		t.Fatal(err)
	}
	p := mustStart(t, s)
	if err := os.Remove(s.Records); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the record", func() bool {
		running, err := Running(s.Records)
		return err == nil && len(running) == 1 && running[0].Identity == p.Identity()
	})
}

// TestStrangersAreLeftAlone has records whose numbers belong to other processes by now, and a half-written record.
func TestStrangersAreLeftAlone(t *testing.T) {
	stranger := mustStart(t, spec("sleep"))
	id := stranger.Identity()
	for _, recorded := range []Identity{
		{PID: id.PID, StartTime: id.StartTime - 1, Boot: id.Boot}, // its number is another's now
		{PID: id.PID, StartTime: id.StartTime, Boot: "another boot"},
	} {
		records := t.TempDir()
		if err := note(records, Record{"ours", recorded}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(records, "7.json"), []byte(`{"name": "ha`), 0o600); err != nil {
			t.Fatal(err)
		}
		if ended, err := EndLeftovers(t.Context(), records, "/of/ours/"); err != nil || len(ended) > 0 {
			t.Errorf("%+v: ended %v, %v", recorded, ended, err)
		}
		if files, err := os.ReadDir(records); err != nil || len(files) > 0 {
			t.Errorf("records stay: %v, %v", files, err)
		}
	}
	if !id.Alive() {
		t.Error("a stranger was killed")
	}
}

func TestListens(t *testing.T) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	us, err := Find(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	other := mustStart(t, spec("sleep"))
	if !us.Listens(port) || other.Identity().Listens(port) {
		t.Errorf("port %d: we %v, another %v", port, us.Listens(port), other.Identity().Listens(port))
	}
	if at := us.Listening(); !slices.Contains(at, netip.AddrPortFrom(netip.IPv6Unspecified(), uint16(port))) &&
		!slices.Contains(at, netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(port))) {
		t.Errorf("port %d: we listen on %v", port, at)
	}
	if at := other.Identity().Listening(); len(at) > 0 {
		t.Errorf("another listens on %v", at)
	}
	if who, program, ok := Listener(port); !ok || who != us || program != "process.test" {
		t.Errorf("port %d: %v, %q, %v", port, who, program, ok)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if who, program, ok := Listener(port); ok {
		t.Errorf("port %d: %v, %q", port, who, program)
	}
	if us.Listens(port) {
		t.Error("nothing listens there any more")
	}
}

// TestAddressesOfTheKernel: the kernel's tables on a machine of this kind give the addresses 127.0.0.1 and ::1, port 631.
func TestAddressesOfTheKernel(t *testing.T) {
	for text, want := range map[string]string{
		"0100007F:0277": "127.0.0.1:631", "00000000000000000000000001000000:0277": "[::1]:631",
		"0000000000000000FFFF00000100007F:0277": "[::ffff:127.0.0.1]:631",
		"":                                      "", "0100007F": "", "01:0277": "", "0100007F:10277": "", "010000XX:0277": "",
	} {
		if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
			return // tables of a machine of the other kind
		}
		got, ok := parseAddress(text)
		if ok != (want != "") || (ok && got.String() != want) {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
}

func TestLastWordOfAPanicIsNotItsTrace(t *testing.T) {
	for want, lines := range map[string][]string{
		"panic: the disk is full": {"starting", "panic: the disk is full", "", "goroutine 1 [running]:", "main.main()", "\tmain.go:31 +0x28"},
		"panic: no log: no space": {
			`{"level":"info"}`, `{"level":"panic","caller":"x.go","msg":"no log","path":"/","error":"no space","stacktrace":"x"}`,
			"panic: no log", "goroutine 1 [running]:",
		},
		"cannot read the configuration": {"starting", "  cannot read the configuration", ""},
		"":                              nil,
	} {
		if got := lastWord(lines); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
