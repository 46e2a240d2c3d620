// Package embedded runs a management cluster without a container engine. Its Kubernetes API consists of etcd, kube-apiserver and
// kube-controller-manager as processes on loopback (package controlplane). Deployments run as processes as well (package runner), with
// the programs of the images that a node would run (package images). One process, the supervisor, starts all others, and they end with
// it. The supervisor is this program again, which Create starts in the background.
//
// An embedded host runs controllers only: it has no nodes and no pods. It works on Linux.
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

// Options say where a host keeps its files, and how long it lives.
type Options struct {
	// StateDir is a private folder for this host alone: data, keys, logs. It is made when needed, and Delete removes it.
	StateDir string
	// ImageDir is the store of unpacked images, which all hosts share. Only a new host needs it: an existing one remembers its own.
	ImageDir string
	// Mirrors replace registries, "registry.k8s.io" → "mirror.example.com/k8s", from the next start on. nil keeps the mirrors of an
	// existing host.
	Mirrors map[string]string
	// Issuer of service accounts' tokens, an https URL, from the next start on. "" is an issuer that only the cluster itself knows. nil
	// keeps the issuer of an existing host.
	Issuer *string
	// Ephemeral makes a host that ends with this process, however the process ends, and that does not flush its data to the disk. By
	// default a host runs in the background, outlives this process and keeps its data.
	Ephemeral bool
	// Executable and Args start a process that calls Run with StateDir appended to Args. Default: this program,
	// "host run".
	Executable string
	Args       []string
	// Programs, if not nil, replace the control plane's programs from images.
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

// New returns the host of that name. It changes nothing. It fails if the name is not valid, or if this system cannot run an embedded
// host.
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

// Supported returns nil if this system can run an embedded host, and else the reason.
func Supported() error {
	if supported {
		return nil
	}
	return diag.Errorf("install Docker or Podman and use --host kind, or use an existing cluster with --host existing",
		"an embedded management cluster needs Linux")
}

// Name of the management cluster.
func (h *Host) Name() string { return h.name }

// State reads the host's folder and looks for its supervisor. The host runs if a process holds the supervisor's lock. An ephemeral host
// that has ended counts as broken, because its data may be incomplete.
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
		return "", fmt.Errorf("look whether the management cluster %s was ever complete: %w", h.name, err)
	}
	if !whole {
		return host.StateBroken, nil
	}
	return host.StateStopped, nil
}

// withoutConfig is the state of a folder without a configuration. A Create or Delete that was killed may have left other files there.
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

// firstKubeconfig waits until a running supervisor has written the kubeconfig. At the first start the supervisor takes the host's lock a
// moment earlier, and the command that made the host may have been killed meanwhile.
func (h *Host) firstKubeconfig(ctx context.Context) ([]byte, error) {
	const limit = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		runs, err := h.dir.alive() // before the file: a supervisor may write the file and then end
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

// Listens implements host.PortOwner.
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

// Deployments implements host.Rememberer.
func (h *Host) Deployments() ([]string, error) {
	return runner.Deployments(h.dir.path(runnerDir))
}

// Stop ends all processes of the host, and those that a killed supervisor left behind. It keeps the host's data. It returns when the
// processes have ended. It is no error if none runs.
func (h *Host) Stop(ctx context.Context) error {
	if err := h.end(ctx); err != nil {
		return diag.Wrap("stop management cluster "+h.name, err, "see "+h.dir.path(supervisorLog))
	}
	return nil
}

// Delete stops the host and removes its folder. A missing host is no error. leftovers names what Delete could not remove.
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
		"%s holds files that do not belong to the management cluster %s", string(h.dir), h.name)
}
