package kind

import (
	"context"
	"fmt"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/engine"
)

// fleetctl's mark of a node. kind cannot label containers, but it can mount folders. The mount point below can be inspected even if the
// container is stopped and the state folder is lost. Its source is a folder that kind mounts into every node, so it exists wherever a
// node can start.
const (
	markSource = "/lib/modules"
	markTarget = "/etc/fleetctl.dev/management-cluster"
)

// completeFile is made in the node after kind has finished. A node without it is half made, because its Create was killed. The file is on
// the container's file system, so it lasts as long as the container.
const completeFile = "/kind/fleetctl-complete"

// State inspects the engine's containers, and looks into a running node. It changes nothing.
func (h *Host) State(ctx context.Context) (host.State, error) {
	state, _, err := h.look(ctx)
	return state, err
}

// look returns the state and the cluster's containers.
func (h *Host) look(ctx context.Context) (host.State, []engine.Container, error) {
	containers, err := h.nodes(ctx)
	if err != nil {
		return "", nil, err
	}
	state := classify(containers)
	if state != host.StateAbsent && state != host.StateForeign {
		others, err := h.othersOf(containers)
		if err != nil {
			return "", nil, err
		}
		if others != "" {
			state = host.StateForeign
		}
	}
	if state != host.StateRunning {
		return state, containers, nil
	}
	complete, err := h.complete(ctx)
	if err != nil {
		return "", nil, err
	}
	if !complete {
		state = host.StateBroken
	}
	return state, containers, nil
}

// classify returns the state as far as the containers' inspection tells it.
func classify(containers []engine.Container) host.State {
	if len(containers) == 0 {
		return host.StateAbsent
	}
	running := true
	for _, c := range containers {
		switch {
		case !marked(c):
			return host.StateForeign
		case !c.Started && !c.Running:
			return host.StateBroken
		case !c.Running || c.Status == "paused":
			running = false
		}
	}
	if running {
		return host.StateRunning
	}
	return host.StateStopped
}

func marked(c engine.Container) bool {
	for _, m := range c.Mounts {
		if m.Destination == markTarget {
			return true
		}
	}
	return false
}

// complete tells whether kind has finished the running node. The script answers with a word and not with its exit code, because engines
// use exit codes for their own errors, and a wrong "no" would rebuild a good cluster.
func (h *Host) complete(ctx context.Context) (bool, error) {
	out, err := h.exec(ctx, `if [ -e `+completeFile+` ]; then echo complete; else echo incomplete; fi`)
	switch {
	case err != nil:
		return false, fmt.Errorf("look into node %s: %w", h.controlPlane(), err)
	case out == "complete":
		return true, nil
	case out == "incomplete":
		return false, nil
	}
	return false, fmt.Errorf("look into node %s: unexpected answer %q", h.controlPlane(), out)
}

func (h *Host) markComplete(ctx context.Context) error {
	if _, err := h.exec(ctx, "touch "+completeFile); err != nil {
		return fmt.Errorf("mark node %s as complete: %w", h.controlPlane(), err)
	}
	return nil
}

// exec runs a shell script in the control plane's node.
func (h *Host) exec(ctx context.Context, script string) (string, error) {
	return h.engine.Output(ctx, "exec", "--privileged", h.controlPlane(), "sh", "-c", script)
}

func (h *Host) foreignError(containers []engine.Container) error {
	if err := h.strangerError(containers); err != nil {
		return err
	}
	var names []string
	for _, c := range containers {
		if !marked(c) {
			names = append(names, c.Name)
		}
	}
	return diag.Errorf(
		fmt.Sprintf(`choose another name, or remove it if nobody needs it: "kind delete cluster --name %s"`, h.name),
		"a cluster named %s exists on %s and was not made by fleetctl (containers %s)",
		h.name, h.engine.Name(), strings.Join(names, ", "))
}
