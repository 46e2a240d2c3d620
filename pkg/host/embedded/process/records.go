package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
)

// Record describes a running process in a file of the folder Spec.Records.
type Record struct {
	// Name in the process's Spec.
	Name string `json:"name"`
	Identity
}

// leftoverPoll is the pause between two looks for killed processes, which are no children of this process.
const leftoverPoll = 10 * time.Millisecond

// notePause is the time between two tries to write a record to a full disk.
const notePause = time.Second

// note writes the record r to dir. An empty dir writes nothing.
func note(dir string, r Record) error {
	if dir == "" {
		return nil
	}
	content, err := json.Marshal(r)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return err
	}
	return atomicfile.WriteVolatile(recordFile(dir, r.PID), content, 0o600) // volatile: a record is worthless after a reboot
}

// keepNoted tries to write the record until it succeeds, as a full disk may refuse it, or until the process ends. The record is only a
// safety net: even without one, the process ends with its parent.
func (p *Process) keepNoted() {
	for note(p.records, Record{p.name, p.identity}) != nil {
		select {
		case <-p.done:
			return
		case <-time.After(notePause):
		}
	}
}

// forget removes the record of a process that has ended with its group.
func forget(dir string, pid int) {
	if dir != "" {
		_ = os.Remove(recordFile(dir, pid)) // a record of an ended process does no harm
	}
}

func recordFile(dir string, pid int) string {
	return filepath.Join(dir, strconv.Itoa(pid)+".json")
}

// decodeRecord parses the content of a record's file. ok is false for a file that was written in part.
func decodeRecord(raw []byte) (r Record, ok bool) {
	return r, json.Unmarshal(raw, &r) == nil && r.PID > 1
}

// Running returns the records in dir (Spec.Records) whose processes are alive.
func Running(dir string) ([]Record, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var running []Record
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the process has just ended
		}
		if err != nil {
			return nil, err
		}
		if r, ok := decodeRecord(raw); ok && r.Alive() {
			running = append(running, r)
		}
	}
	return running, nil
}

// EndLeftovers ends the processes that a killed parent recorded in dir (Spec.Records), and the members of their groups. The caller must
// know that no such parent lives. EndLeftovers returns when the processes have ended, and names the ones that it had to end.
//
// It does not touch another process that now has the number of a recorded process: start time and boot tell the two apart. If a recorded
// process has ended, its children are the processes of its group that started later and whose environment contains mark. mark is a folder
// that no other program has in its environment.
func EndLeftovers(ctx context.Context, dir, mark string) (ended []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		raw, err := os.ReadFile(path)
		if err != nil {
			return ended, err
		}
		var r Record
		if json.Unmarshal(raw, &r) == nil && r.PID > 1 { // skip files that were written in part
			names, err := r.end(ctx, mark)
			ended = append(ended, names...)
			if err != nil {
				return ended, err
			}
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return ended, err
		}
	}
	return ended, nil
}

// end kills the recorded process, if it runs, and the rest of its group.
func (r Record) end(ctx context.Context, mark string) (ended []string, err error) {
	told := map[Identity]bool{}
	for {
		left, err := leftOf(r.Identity, mark)
		if err != nil || len(left) == 0 {
			return ended, err
		}
		for _, id := range left {
			if !told[id] {
				told[id] = true
				ended = append(ended, fmt.Sprintf("%s (process %d)", r.Name, id.PID))
			}
			// Kill it at once, as the kernel does with the children of a killed parent.
			if err := id.kill(); err != nil && !errors.Is(err, ErrGone) {
				return ended, err
			}
		}
		select {
		case <-ctx.Done():
			return ended, fmt.Errorf("end what is left of a killed supervisor, %s: %w", strings.Join(ended, ", "), context.Cause(ctx))
		case <-time.After(leftoverPoll):
		}
	}
}
