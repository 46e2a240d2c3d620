package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

const holderFile = "lock-holder.json"

// holder describes the holder of a lock. It is written beside the lock, for the next command that wants the lock.
type holder struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// Lock locks the management cluster for this process. If another process holds the lock, the error names that process. The operating system
// releases the lock with the process, also after kill -9.
func (c Cluster) Lock(command string) (unlock func(), err error) {
	lock, err := c.lock()
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Sweep(c.Dir); err != nil {
		_ = lock.Unlock()
		return nil, fmt.Errorf("clean up the state folder of %s: %w", c.Name, err)
	}
	raw, err := json.Marshal(holder{PID: os.Getpid(), Command: command, Since: time.Now().UTC()})
	if err == nil {
		err = c.Write(holderFile, raw)
	}
	if err != nil { // a full disk, on which an abort still has to work: who comes second is not told who came first
		_ = os.Remove(c.Path(holderFile))
	}
	return func() {
		if own, err := atomicfile.Guards(lock); err != nil || !own {
			return // it was removed, and what is there now is another's
		}
		_ = os.Remove(c.Path(holderFile))
		_ = lock.Unlock()
	}, nil
}

// lock takes the lock of the current folder. A lock in a folder that was removed meanwhile, for example by a teardown, would keep nobody
// out.
func (c Cluster) lock() (*flock.Flock, error) {
	for {
		if err := c.ensure(); err != nil {
			return nil, err
		}
		lock := flock.New(c.Path(lockFile))
		got, err := lock.TryLock()
		if errors.Is(err, fs.ErrNotExist) {
			continue // the folder went between the two
		}
		if err == nil && !got {
			return nil, c.heldError()
		}
		if err == nil {
			got, err = atomicfile.Guards(lock)
		}
		if err != nil {
			return nil, fmt.Errorf("lock the management cluster %s: %w", c.Name, err)
		}
		if got {
			return lock, nil
		}
	}
}

func (c Cluster) heldError() error {
	hint := "wait until it has ended, then run this again"
	raw, err := os.ReadFile(c.Path(holderFile))
	var h holder
	if err != nil || json.Unmarshal(raw, &h) != nil {
		return diag.Errorf(hint, "another fleetctl is working on the management cluster %s", c.Name)
	}
	return diag.Errorf(hint, "`%s` (process %d, since %s) is working on the management cluster %s",
		strings.TrimSpace(h.Command), h.PID, h.Since.Local().Format(time.TimeOnly), c.Name)
}
