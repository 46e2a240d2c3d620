package embedded

import (
	"fmt"
	"slices"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/controlplane"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// littleRoom is the free space in bytes below which a disk counts as full. etcd allocates more than that at once.
const littleRoom = 1 << 20

// Trouble implements host.Complainer. It finds a full disk, and a control plane program that does not run, with the last line of its log.
func (h *Host) Trouble() error {
	if runs, err := h.dir.alive(); err != nil || !runs {
		return err
	}
	// Look at the disk first: when it is full, the records and logs below may be missing.
	if free, err := freeSpace(string(h.dir)); err == nil && free < littleRoom {
		return diag.Errorf("make room on that disk: then the host goes on without a restart, and no write that it has confirmed is lost",
			"no space left on the disk of %s (%d KiB free)", string(h.dir), free>>10)
	}
	if starting, err := h.dir.held(startingFile); err != nil || starting {
		return err
	}
	missing, err := h.missing()
	if err == nil && missing != "" {
		time.Sleep(moment) // a program that crashed once runs again by then
		missing, err = h.missing()
	}
	if err != nil || missing == "" {
		return err
	}
	said := "its log is empty"
	if lines := lastLines(controlplane.LogFile(h.dir.path(controlPlaneDir), missing), 1); len(lines) > 0 && lines[0] != "" {
		said = "its log ends with: " + lines[0]
	}
	return diag.Errorf("the host starts it again and again; see `fleetctl host logs "+missing+"` and `fleetctl host logs supervisor`",
		"%s does not run; %s", missing, said)
}

// moment is the time in which a program that ended for the first time runs again.
const moment = 300 * time.Millisecond

// missing names the first program of the control plane that does not run; "" if all run.
func (h *Host) missing() (string, error) {
	running, err := process.Running(h.dir.path(processesDir))
	if err != nil {
		return "", fmt.Errorf("look at the processes of management cluster %s: %w", h.name, err)
	}
	for _, program := range controlplane.Names() {
		if !slices.ContainsFunc(running, func(r process.Record) bool { return r.Name == program }) {
			return program, nil
		}
	}
	return "", nil
}
