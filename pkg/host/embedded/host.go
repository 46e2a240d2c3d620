// Package embedded carries a management cluster without a container engine: a Kubernetes API of etcd, kube-apiserver and
// kube-controller-manager as processes on loopback (package controlplane), in which Deployments run as processes too
// (package runner), their programs taken out of the same images that a node would run (package images). One process, the
// supervisor, holds them all: it is this program again, started by Create in the background, and with it they end.
//
// It carries controllers only: there are no nodes and no pods. It works on Linux.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"regexp"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/controlplane"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/runner"
)

// Options say where a host keeps what belongs to it, and how long it lives.
type Options struct {
	// StateDir is a private folder for this host alone: data, keys, logs. It is made when needed, and Delete removes it.
	StateDir string
	// ImageDir is the store of unpacked images that all hosts share. It is needed to make a host; one that is there
	// remembers its own.
	ImageDir string
	// Mirrors are asked in place of registries, "registry.k8s.io" → "mirror.example.com/k8s", from the next start on. nil leaves
	// those of a host that is there as they are.
	Mirrors map[string]string
	// Issuer of service accounts' tokens, from the next start on; "" is one that only the cluster itself knows. nil leaves that of a host that is there.
	Issuer *string
	// Ephemeral makes a host that ends with this process, however that ends, and keeps its data in memory's speed. The
	// default is one in the background that outlives it and keeps its data for good.
	Ephemeral bool
	// Executable and Args start a process that calls Run with StateDir appended to Args. Default: this program,
	// "host run".
	Executable string
	Args       []string
	// Programs, if not nil, are run as the control plane in place of those from images.
	Programs *controlplane.Programs
}

// Host is an embedded management cluster. It implements host.Host.
type Host struct {
	name string
	opts Options
	dir  stateDir
}

// What this kind of host can do.
var (
	_ host.Host       = (*Host)(nil)
	_ host.Companion  = (*Host)(nil)
	_ host.Complainer = (*Host)(nil)
	_ host.Exposed    = (*Host)(nil)
	_ host.Logger     = (*Host)(nil)
	_ host.PortOwner  = (*Host)(nil)
	_ host.Rememberer = (*Host)(nil)
	_ host.Stopper    = (*Host)(nil)
)

var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*$`)

// New returns the host of that name. It changes nothing. The error says that the name cannot be one, or that this system
// cannot carry it.
func New(name string, opts Options) (*Host, error) {
	if !validName.MatchString(name) {
		return nil, diag.Usage("use lower-case letters, digits, dots and dashes", "%q cannot be the name of a management cluster", name)
	}
	if err := Supported(); err != nil {
		return nil, err
	}
	if opts.StateDir == "" {
		return nil, errors.New("embedded host: no state folder given")
	}
	if opts.Executable == "" {
		exe, err := os.Executable()
		if err != nil {
			return nil, diag.Wrap("find the fleetctl program", err, "")
		}
		opts.Executable, opts.Args = exe, []string{"host", "run"}
	}
	return &Host{name: name, opts: opts, dir: absolute(opts.StateDir)}, nil
}

// Supported says why this system cannot carry an embedded host; nil if it can.
func Supported() error {
	if supported {
		return nil
	}
	return diag.Errorf("install Docker or Podman and use --host kind, or name a cluster that is there with --host existing",
		"an embedded management cluster needs Linux")
}

// Name of the management cluster.
func (h *Host) Name() string { return h.name }

// State looks at the host's folder and at its supervisor. A running one is a process that holds its lock, so it cannot be
// taken for another. An ephemeral host that has ended is broken: its data need not be whole.
func (h *Host) State(context.Context) (host.State, error) {
	c, err := h.dir.readConfig()
	if errors.Is(err, fs.ErrNotExist) {
		return h.withoutConfig()
	}
	if err != nil {
		return "", err
	}
	if c.Name != h.name {
		return host.StateForeign, nil
	}
	runs, err := h.dir.alive()
	switch {
	case err != nil:
		return "", err
	case runs:
		return host.StateRunning, nil
	case c.Ephemeral:
		return host.StateBroken, nil
	}
	whole, err := h.dir.completed()
	if err != nil {
		return "", fmt.Errorf("look whether the management cluster %s was ever whole: %w", h.name, err)
	}
	if !whole {
		return host.StateBroken, nil
	}
	return host.StateStopped, nil
}

// withoutConfig is the state of a folder without a configuration: a Create or Delete that was killed may have left some.
func (h *Host) withoutConfig() (host.State, error) {
	entries, err := os.ReadDir(string(h.dir))
	switch {
	case errors.Is(err, fs.ErrNotExist) || (err == nil && len(entries) == 0):
		return host.StateAbsent, nil
	case err != nil:
		return "", err
	}
	for _, e := range entries {
		if !ours(e.Name()) {
			return host.StateForeign, nil
		}
	}
	return host.StateBroken, nil
}

// Kubeconfig for clients on this machine, as administrator.
func (h *Host) Kubeconfig(ctx context.Context) ([]byte, error) {
	content, err := controlplane.Kubeconfig(h.dir.path(controlPlaneDir))
	if errors.Is(err, fs.ErrNotExist) {
		content, err = h.firstKubeconfig(ctx)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, diag.Errorf("make it with `fleetctl init`", "the management cluster %s has never run", h.name)
	}
	return content, diag.Wrap("read the kubeconfig of "+h.name, err, "")
}

// firstKubeconfig waits for a supervisor, where one runs, to write the kubeconfig: at the first start it is there a moment after the host's
// lock, and who made the host may have been killed in between.
func (h *Host) firstKubeconfig(ctx context.Context) ([]byte, error) {
	const limit = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		runs, err := h.dir.alive() // before the file: one that has written it may end
		if err != nil {
			return nil, err
		}
		content, err := controlplane.Kubeconfig(h.dir.path(controlPlaneDir))
		if !runs || !errors.Is(err, fs.ErrNotExist) {
			return content, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-tick.C:
		}
	}
}

// Gateway is loopback: the processes of the cluster are processes of this machine.
func (h *Host) Gateway(context.Context) (host.Gateway, error) {
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	return host.Gateway{Listen: loopback, Host: loopback.String()}, nil
}

// Listens names the program of this host that listens on a TCP port; "" if none does.
func (h *Host) Listens(port int) (program string, err error) {
	running, err := process.Running(h.dir.path(processesDir))
	if err != nil {
		return "", fmt.Errorf("look at the processes of management cluster %s: %w", h.name, err)
	}
	for _, r := range running {
		if r.Identity.Listens(port) {
			return r.Name, nil
		}
	}
	return "", nil
}

// Deployments names those that the host runs, or ran when it was stopped, as NAMESPACE/NAME.
func (h *Host) Deployments() ([]string, error) {
	return runner.Deployments(h.dir.path(runnerDir))
}

// Stop ends all processes of the host, also those that a killed supervisor left behind, and keeps its data. It returns when they are gone; none running is no error.
func (h *Host) Stop(ctx context.Context) error {
	if err := h.end(ctx); err != nil {
		return diag.Wrap("stop management cluster "+h.name, err, "see "+h.dir.path(supervisorLog))
	}
	return nil
}

// Delete stops the host and removes its folder. Absent is no error. It returns what it could not remove.
func (h *Host) Delete(ctx context.Context) (leftovers []string, err error) {
	state, err := h.State(ctx)
	if err != nil {
		return nil, err
	}
	switch state {
	case host.StateAbsent:
		return nil, nil
	case host.StateForeign:
		return nil, h.foreignError()
	case host.StateRunning, host.StateStopped, host.StateBroken:
	}
	if err := h.Stop(ctx); err != nil {
		return []string{"processes of " + h.name}, err
	}
	if err := h.dir.remove(); err != nil {
		return []string{"folder " + string(h.dir)}, fmt.Errorf("remove management cluster %s: %w", h.name, err)
	}
	return nil, nil
}

func (h *Host) foreignError() error {
	return diag.Errorf("choose another name, or look into the folder and remove it",
		"%s holds something that is not the management cluster %s", string(h.dir), h.name)
}
