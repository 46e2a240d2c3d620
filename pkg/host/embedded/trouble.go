package embedded

import (
	"cmp"
	"fmt"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/controlplane"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// littleRoom is when a disk counts as full: etcd takes more than that at once.
const littleRoom = 1 << 20

// Trouble says what keeps a host that runs from working, as far as its folder shows it: a full disk, or a program of its control plane
// that has ended, with the last line of its log. It is nil where nothing is seen, or where the host does not run.
func (h *Host) Trouble() error {
	if runs, err := h.dir.alive(); err != nil || !runs {
		return err
	}
	// First of all: with no room left nothing of what follows could be written down.
	if free, err := freeSpace(string(h.dir)); err == nil && free < littleRoom {
		return diag.Errorf("make room on that disk: the host goes on by itself then, and nothing of what it had answered for is lost",
			"no space left on the disk of %s (%d KiB are free)", string(h.dir), free>>10)
	}
	if starting, err := h.dir.held(startingFile); err != nil || starting {
		return err
	}
	running, err := process.Running(h.dir.path(processesDir))
	if err != nil {
		return fmt.Errorf("look at the processes of management cluster %s: %w", h.name, err)
	}
	runs := map[string]bool{}
	for _, r := range running {
		runs[r.Name] = true
	}
	for _, program := range controlplane.Names() {
		if runs[program] {
			continue
		}
		log := controlplane.LogFile(h.dir.path(controlPlaneDir), program)
		said := "its log is empty"
		if lines := lastLines(log, 1); len(lines) > 0 {
			said = "its log ends with: " + cmp.Or(lines[0], "an empty line")
		}
		return diag.Errorf("it is started again and again; `fleetctl host logs supervisor` says how it ended, `fleetctl host logs "+program+"` why",
			"%s does not run; %s", program, said)
	}
	return nil
}
