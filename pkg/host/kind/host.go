// Package kind runs a management cluster in a container, with kind as a library, on Docker, Podman or nerdctl. It is the only package that
// imports kind.
package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"

	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/constants"

	"github.com/fleetctl/fleetctl/pkg/await"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/engine"
)

// clusterLabel is the label that kind and the docker infrastructure provider put on each container of a cluster.
const clusterLabel = "io.x-k8s.kind.cluster"

// Options of New.
type Options struct {
	// StateDir is a private folder for this cluster alone. Create makes it, and Delete removes fleetctl's files from it. Without it,
	// fleetctl only forgets whether it made kind's network.
	StateDir string
	// Engine to use; nil calls engine.Detect.
	Engine *engine.Engine
}

// Host is a management cluster on kind. It implements host.Host.
type Host struct {
	name   string
	state  stateDir
	engine *engine.Engine
	owner  owner

	mu sync.Mutex
	// creating is closed when a call of kind that outlived its context has ended; nil without such a call.
	creating <-chan struct{}
}

// What this kind of host can do.
var (
	_ host.Host     = (*Host)(nil)
	_ host.Marked   = (*Host)(nil)
	_ host.OnEngine = (*Host)(nil)
)

// validName is what kind takes as a cluster's name; with kind's suffix it must also fit a host name.
var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*$`)

const maxName = 50

// New returns the host of that name on the container engine of this machine. It changes nothing. It fails if the name is not valid, or if
// no engine answers.
func New(ctx context.Context, name string, opts Options) (*Host, error) {
	if !validName.MatchString(name) || len(name) > maxName {
		return nil, diag.Usage(fmt.Sprintf("use at most %d lower-case letters, digits, dots and dashes", maxName),
			"%q cannot be the name of a kind cluster", name)
	}
	if opts.StateDir == "" {
		return nil, errors.New("kind host: no state folder given")
	}
	e := opts.Engine
	if e == nil {
		var err error
		if e, err = engine.Detect(ctx); err != nil {
			return nil, err
		}
	}
	return &Host{name: name, state: stateDir(opts.StateDir), engine: e, owner: here()}, nil
}

// Name of the management cluster.
func (h *Host) Name() string { return h.name }

// provider is kind's API on the host's engine.
func (h *Host) provider(detail func(string)) *cluster.Provider {
	options := []cluster.ProviderOption{cluster.ProviderWithLogger(logger{detail})}
	switch h.engine.Name() {
	case engine.Docker:
		options = append(options, cluster.ProviderWithDocker())
	case engine.Podman:
		options = append(options, cluster.ProviderWithPodman())
	case engine.Nerdctl, engine.Finch:
		options = append(options, cluster.ProviderWithNerdctl(string(h.engine.Name())))
	}
	return cluster.NewProvider(options...)
}

// nodes lists the containers of the cluster, running or not.
func (h *Host) nodes(ctx context.Context) ([]engine.Container, error) {
	return h.engine.Containers(ctx, clusterLabel+"="+h.name)
}

// controlPlane is the name of the container that holds the control plane.
func (h *Host) controlPlane() string { return h.name + "-" + constants.ControlPlaneNodeRoleValue }

// Kubeconfig for clients on this machine, as administrator. It is read from the node, so it does not depend on StateDir.
func (h *Host) Kubeconfig(ctx context.Context) ([]byte, error) {
	config, err := await.Call(ctx, func() (string, error) { return h.provider(nil).KubeConfig(h.name, false) })
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of kind cluster %s: %w", h.name, err)
	}
	return []byte(config), nil
}

// Delete removes the cluster's containers and their volumes, and fleetctl's files. It removes kind's network if Create made it and no other
// container uses it. It refuses a cluster that fleetctl has not made. A missing cluster is no error. leftovers names what it could not
// remove.
func (h *Host) Delete(ctx context.Context) (leftovers []string, err error) {
	if err := h.awaitCreation(ctx); err != nil {
		return nil, err
	}
	state, containers, err := h.look(ctx)
	if err != nil {
		return nil, err
	}
	if state == host.StateForeign {
		return nil, h.foreignError(containers)
	}
	if err := h.removeNodes(ctx, containers); err != nil {
		for _, c := range containers {
			leftovers = append(leftovers, "container "+c.Name)
		}
		return leftovers, err
	}
	left, err := h.removeNetwork(ctx)
	leftovers = append(leftovers, left...)
	if err != nil {
		return leftovers, err
	}
	if len(left) > 0 {
		return leftovers, nil // the state folder still has the record of the network
	}
	if err := h.state.remove(); err != nil {
		return append(leftovers, "folder "+string(h.state)), err
	}
	return leftovers, nil
}

// removeNodes removes the containers, and volumes that kind's Podman provider makes before a container.
func (h *Host) removeNodes(ctx context.Context, containers []engine.Container) error {
	if err := h.engine.Remove(ctx, containers...); err != nil {
		return err
	}
	if h.engine.Name() == engine.Podman {
		return h.engine.RemoveVolumes(ctx, h.controlPlane())
	}
	return nil
}

// removeNetwork removes kind's network if the record says that Create made it.
func (h *Host) removeNetwork(ctx context.Context) (leftovers []string, err error) {
	record, err := h.state.read()
	if err != nil || record.Network == "" {
		return nil, err
	}
	_, exists, err := h.engine.Network(ctx, record.Network)
	if err != nil || !exists {
		return nil, err
	}
	users, err := h.networkUsers(ctx, record.Network)
	if err != nil {
		return nil, err
	}
	if len(users) > 0 {
		return []string{fmt.Sprintf("network %s (used by %s)", record.Network, strings.Join(users, ", "))}, nil
	}
	if err := h.engine.RemoveNetwork(ctx, record.Network); err != nil {
		return []string{"network " + record.Network}, err
	}
	return nil, nil
}

func (h *Host) networkUsers(ctx context.Context, network string) ([]string, error) {
	all, err := h.engine.Containers(ctx)
	if err != nil {
		return nil, err
	}
	var users []string
	for _, c := range all {
		if _, on := c.Networks[network]; on {
			users = append(users, c.Name)
		}
	}
	return users, nil
}

// EngineSocket is the path of the engine's Docker-compatible API socket. The docker infrastructure provider needs it in the node. The
// error is an *engine.SocketError, with a hint how to start the service.
func (h *Host) EngineSocket(ctx context.Context) (string, error) { return h.engine.Socket(ctx) }

// ignoreMissing returns nil for fs.ErrNotExist, and else err.
func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
