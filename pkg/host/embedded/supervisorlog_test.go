package embedded

import (
	"bytes"
	"strings"
	"syscall"
	"testing"
)

// fullDisk takes so many bytes and no more.
type fullDisk struct {
	bytes.Buffer
	room int
}

func (d *fullDisk) Write(p []byte) (int, error) {
	if len(p) <= d.room {
		d.room -= len(p)
		return d.Buffer.Write(p)
	}
	n, _ := d.Buffer.Write(p[:d.room])
	d.room = 0
	return n, syscall.ENOSPC
}

func TestLogOfAFullDiskIsWrittenOnceThereIsRoom(t *testing.T) {
	disk := &fullDisk{room: 10}
	log := &patientWriter{to: disk}
	say := func(line string) {
		t.Helper()
		if n, err := log.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatalf("write: %d, %v", n, err)
		}
	}
	say("one\n")
	say("two, which does not fit\n")
	say("three\n")
	for range maxBacklog / 100 {
		say(strings.Repeat("again ", 20) + "\n")
	}
	if len(log.backlog) > maxBacklog {
		t.Errorf("it keeps %d bytes", len(log.backlog))
	}
	disk.room = 10 * maxBacklog
	say("there is room\n")
	say("the end\n")
	text := disk.String()
	if !strings.Contains(text, "there is room") || !strings.HasPrefix(text, "one\ntwo, which does not fit\nthree\nagain ") ||
		!strings.HasSuffix(text, "the end\n") {
		t.Errorf("written: %.80s … %s", text, text[max(0, len(text)-80):])
	}
	if log.backlog != nil {
		t.Errorf("kept: %d bytes", len(log.backlog))
	}
}
