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

// An engine may serve several people, by a socket that a group may use or from afar, and all of them see all its containers. So a node also
// says, in the way of the mark, who made it and for which fleet: by the names of mount points, which show also when it is stopped.
const (
	ownerTarget = "/etc/fleetctl.dev/owner/"
	fleetTarget = "/etc/fleetctl.dev/fleet/"
)

// owner is who made a node: USER-ID/USER-NAME/MACHINE. The name is for people to read, and the machine is a hash of its id: user ids of
// several machines collide.
type owner string

// here is the user of this process on this machine.
func here() owner {
	id, name := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		id, name = u.Uid, u.Username
	}
	sum := sha256.Sum256([]byte(machine()))
	const enough = 6
	return owner(path.Join(segment(id), segment(name), hex.EncodeToString(sum[:enough])))
}

// machine is the id of this machine, or its name where it has none.
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

// segment makes one segment of a path of any text; engines read colons and commas in it.
func segment(text string) string {
	if text = notInSegment.ReplaceAllString(text, "_"); text == "" {
		return "unknown"
	}
	return text
}

// is tells whether two are the same user of the same machine. A user may be renamed.
func (o owner) is(other owner) bool {
	a, b := strings.Split(string(o), "/"), strings.Split(string(other), "/")
	const parts = 3
	return len(a) == parts && len(b) == parts && a[0] == b[0] && a[2] == b[2]
}

// String is how the others know the user.
func (o owner) String() string {
	parts := strings.Split(string(o), "/")
	const most = 3
	if len(parts) != most {
		return "another user"
	}
	return fmt.Sprintf("user %s (%s) of machine %s", parts[1], parts[0], parts[2])
}

// marks are what the mount points of a node say. Nodes that were made before there were any say nothing.
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

// othersOf is who made containers that bear our mark, if that was not this user: nor on this machine, nor with the state folder at hand.
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

// Stranger says who else has made a cluster of our name with fleetctl; nil where nobody has.
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
			return nil // no fleetctl made that
		}
	}
	by, err := h.othersOf(containers)
	if err != nil || by == "" {
		return err
	}
	return diag.Errorf("choose another name: this engine is shared; if it is yours, work with it from where you made it, or with the state folder of there",
		"the kind cluster %s on %s was made by somebody else's fleetctl: %s", h.name, h.engine.Name(), by)
}

// Fleet is the identity of the fleet that the cluster was made for; "" where that is not known.
func (h *Host) Fleet(ctx context.Context) (string, error) {
	containers, err := h.nodes(ctx)
	if err != nil {
		return "", err
	}
	_, fleet := marks(containers)
	return fleet, nil
}
