package embedded

import (
	"fmt"
	"slices"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/controlplane"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// littleRoom is when a disk counts as full: etcd takes more than that at once.
const littleRoom = 1 << 20

// Trouble says what keeps a running host from working, as far as the host's folder shows it: a full disk, or a control plane program that
// has ended, with the last line of its log. It is nil where nothing is seen, or where the host does not run.
func (h *Host) Trouble() error {
	if runs, err := h.dir.alive(); err != nil || !runs {
		return err
	}
	// First of all: with no room left nothing of what follows could be written down.
	if free, err := freeSpace(string(h.dir)); err == nil && free < littleRoom {
		return diag.Errorf("make room on that disk: then the host goes on without a restart, and no write that it has confirmed is lost",
			"no space left on the disk of %s (%d KiB are free)", string(h.dir), free>>10)
	}
	if starting, err := h.dir.held(startingFile); err != nil || starting {
		return err
	}
	missing, err := h.missing()
	if err == nil && missing != "" {
		time.Sleep(moment) // one that crashed once is back by then
		missing, err = h.missing()
	}
	if err != nil || missing == "" {
		return err
	}
	said := "its log is empty"
	if lines := lastLines(controlplane.LogFile(h.dir.path(controlPlaneDir), missing), 1); len(lines) > 0 && lines[0] != "" {
		said = "its log ends with: " + lines[0]
	}
	return diag.Errorf("it is started again and again; `fleetctl host logs supervisor` says how it ended, `fleetctl host logs "+missing+"` why",
		"%s does not run; %s", missing, said)
}

// moment is what a program that ended for the first time needs to be there again.
const moment = 300 * time.Millisecond

// missing is the first program of the control plane that does not run; "" if all do.
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
