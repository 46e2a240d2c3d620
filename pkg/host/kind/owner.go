package kind

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/user"
	"path"
	"regexp"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host/engine"
)

// Several people may use one engine, over a shared socket or a network, and they all see all containers. So a node also carries its owner
// and its fleet, in the names of mount points, which can be inspected even when the node is stopped.
const (
	ownerTarget = "/etc/fleetctl.dev/owner/"
	fleetTarget = "/etc/fleetctl.dev/fleet/"
)

// owner is the maker of a node: USER-ID/USER-NAME/MACHINE. The name is only for messages. MACHINE is a hash of the machine's id, because
// user ids of several machines collide.
type owner string

// here is the owner of nodes that this process makes.
func here() owner {
	id, name := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		id, name = u.Uid, u.Username
	}
	sum := sha256.Sum256([]byte(machine()))
	const enough = 6
	return owner(path.Join(segment(id), segment(name), hex.EncodeToString(sum[:enough])))
}

// machine is a hash of this machine's id, or of its name if it has no id.
func machine() string {
	for _, file := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		if id, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(id)) != "" {
			return strings.TrimSpace(string(id))
		}
	}
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

var notInSegment = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// segment turns any text into one segment of a path, without colons and commas, which engines would parse.
func segment(text string) string {
	if text = notInSegment.ReplaceAllString(text, "_"); text == "" {
		return "unknown"
	}
	return text
}

// is tells whether both owners are the same user of the same machine. It ignores the name, because a user may be renamed.
func (o owner) is(other owner) bool {
	a, b := strings.Split(string(o), "/"), strings.Split(string(other), "/")
	const parts = 3
	return len(a) == parts && len(b) == parts && a[0] == b[0] && a[2] == b[2]
}

// String describes the owner in messages.
func (o owner) String() string {
	parts := strings.Split(string(o), "/")
	const most = 3
	if len(parts) != most {
		return "another user"
	}
	return fmt.Sprintf("user %s (%s) of machine %s", parts[1], parts[0], parts[2])
}

// marks reads owner and fleet from the mount points of a node. Both are empty for a node that an older version made.
func marks(containers []engine.Container) (by owner, fleet string) {
	for _, c := range containers {
		for _, m := range c.Mounts {
			if text, ok := strings.CutPrefix(m.Destination, ownerTarget); ok {
				by = owner(text)
			}
			if text, ok := strings.CutPrefix(m.Destination, fleetTarget); ok {
				fleet = text
			}
		}
	}
	return by, fleet
}

// othersOf is the owner of containers with fleetctl's mark, if another user made them: neither this user on this machine, nor the owner
// in the state folder's record. Otherwise it is empty.
func (h *Host) othersOf(containers []engine.Container) (owner, error) {
	by, _ := marks(containers)
	if by == "" || by.is(h.owner) {
		return "", nil
	}
	record, err := h.state.read()
	if err != nil {
		return "", err
	}
	if record.Owner == string(by) {
		return "", nil
	}
	return by, nil
}

// Stranger implements host.Marked.
func (h *Host) Stranger(ctx context.Context) error {
	containers, err := h.nodes(ctx)
	if err != nil {
		return err
	}
	return h.strangerError(containers)
}

func (h *Host) strangerError(containers []engine.Container) error {
	for _, c := range containers {
		if !marked(c) {
			return nil // another program made the cluster
		}
	}
	by, err := h.othersOf(containers)
	if err != nil || by == "" {
		return err
	}
	return diag.Errorf("choose another name; if the cluster is yours, use it as the user and on the machine that made it, or with its "+
		"state folder",
		"the kind cluster %s on %s belongs to another user of fleetctl: %s", h.name, h.engine.Name(), by)
}

// Fleet implements host.Marked.
func (h *Host) Fleet(ctx context.Context) (string, error) {
	containers, err := h.nodes(ctx)
	if err != nil {
		return "", err
	}
	_, fleet := marks(containers)
	return fleet, nil
}
