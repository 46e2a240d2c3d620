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

// Record is what Spec.Records holds of a process while it runs.
type Record struct {
	// Name is that of its Spec.
	Name string `json:"name"`
	Identity
}

// leftoverPoll is the pause between two looks at processes that were killed and are nobody's children here.
const leftoverPoll = 10 * time.Millisecond

// notePause is the time between two tries to write a record to a full disk.
const notePause = time.Second

// note writes down that the process runs; where dir is empty there is nothing to do.
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
	return atomicfile.WriteVolatile(recordFile(dir, r.PID), content, 0o600) // after a reboot it means nothing
}

// keepNoted writes the record, again and again where a full disk does not take it, until the process ends. The record is a backstop:
// without one the process ends with its parent all the same.
func (p *Process) keepNoted() {
	for note(p.records, Record{p.name, p.identity}) != nil {
		select {
		case <-p.done:
			return
		case <-time.After(notePause):
		}
	}
}

// forget is for a process that is gone with its group.
func forget(dir string, pid int) {
	if dir != "" {
		_ = os.Remove(recordFile(dir, pid)) // one that stays stands for a process that is gone, which does no harm
	}
}

func recordFile(dir string, pid int) string {
	return filepath.Join(dir, strconv.Itoa(pid)+".json")
}

// decodeRecord tells what is in a file. Half written is as good as not written.
func decodeRecord(raw []byte) (r Record, ok bool) {
	return r, json.Unmarshal(raw, &r) == nil && r.PID > 1
}

// Running are the processes that dir (Spec.Records) has and that are alive.
func Running(dir string) ([]Record, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var running []Record
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has just ended
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

// EndLeftovers ends what is left of the processes whose parent recorded them in dir (Spec.Records) and was killed: those that
// run still, and members of their groups. It is for a caller who knows that no such parent lives. It names those that it had
// to end, and returns when they are gone.
//
// A process that has the number of one of ours by now is not touched: the start time and the boot tell them apart. The children
// of one that has ended are known by its group, by having started after it, and by mark, which their environment must
// contain: a folder that nobody else would have there.
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
		if json.Unmarshal(raw, &r) == nil && r.PID > 1 { // half written is as good as not written
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

// end kills what is left of one process and its group.
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
			// Killed, not asked: its parent was, and the kernel does the same to what it reaches.
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
