// Package existing uses a cluster that the user already has as a management cluster. It makes and removes nothing. Workflows install
// Cluster API and Flux there, and remove them.
package existing

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/internal/apiserver"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// Options names the cluster.
type Options struct {
	// Kubeconfig is the path of the file. Empty means $KUBECONFIG, or else the file in the home folder.
	Kubeconfig string
	// Context of the kubeconfig. It is required, so that fleetctl never installs into a cluster only because it is the current one.
	Context string
}

// Host is a management cluster on an existing cluster. It implements host.Host.
type Host struct {
	name       string
	kubeconfig []byte
	client     *apiserver.Client
}

// What this kind of host can do.
var (
	_ host.Host    = (*Host)(nil)
	_ host.Guarded = (*Host)(nil)
)

// New reads the kubeconfig. It does not connect to the cluster. The error has a hint if the context is not named or does not exist.
func New(name string, opts Options) (*Host, error) {
	if opts.Context == "" {
		return nil, diag.Usage(`"kubectl config get-contexts" lists them`,
			"management cluster %s: name the context of the existing cluster", name)
	}
	kubeconfig, err := apiserver.Extract(opts.Kubeconfig, opts.Context)
	if err != nil {
		hint := "name a kubeconfig that you can read: host.existing.kubeconfig in fleet.yaml, or --host-kubeconfig for a new fleet"
		if missing, ok := errors.AsType[*apiserver.NoContextError](err); ok {
			hint = "the kubeconfig has " + strings.Join(missing.Known, ", ")
		}
		return nil, diag.Wrap("management cluster "+name, err, hint)
	}
	client, err := apiserver.New(kubeconfig)
	if err != nil {
		return nil, diag.Wrap("management cluster "+name, err, "")
	}
	return &Host{name: name, kubeconfig: kubeconfig, client: client}, nil
}

// Kubeconfig returns a kubeconfig with one context of a kubeconfig file, and with the content of all files that it names. The name "" is
// the current context. The path "" is $KUBECONFIG, or else the file in the home folder.
func Kubeconfig(path, name string) ([]byte, error) {
	kubeconfig, err := apiserver.Extract(path, name)
	hint := "name a kubeconfig that you can read, with a current context"
	if missing, ok := errors.AsType[*apiserver.NoContextError](err); ok && len(missing.Known) > 0 {
		hint = "the kubeconfig has " + strings.Join(missing.Known, ", ")
	}
	op := "read the kubeconfig"
	if path != "" {
		op = "kubeconfig " + path
	}
	return kubeconfig, diag.Wrap(op, err, hint)
}

// Name of the management cluster.
func (h *Host) Name() string { return h.name }

// State is running if the API server is ready. An unreachable API server is an error and not StateAbsent, because fleetctl cannot make the
// cluster.
func (h *Host) State(ctx context.Context) (host.State, error) {
	if err := h.client.Ready(ctx); err != nil {
		return "", h.unreachable(err)
	}
	return host.StateRunning, nil
}

// Create checks that the API server is ready and that the context's user may install into the cluster. It fails if
// there are images to load, as LoadImages does, and ignores the node image and mounts, because it makes no node.
func (h *Host) Create(ctx context.Context, opts host.CreateOptions) error {
	if err := h.CheckAccess(ctx); err != nil {
		return err
	}
	if opts.Answers != nil {
		opts.Answers(h.kubeconfig)
	}
	return host.LoadWanted(ctx, h, opts)
}

// CheckAccess returns an error if the API server is not ready, or if the context's user may not install into the cluster.
func (h *Host) CheckAccess(ctx context.Context) error {
	if err := h.client.Ready(ctx); err != nil {
		return h.unreachable(err)
	}
	admin, err := h.client.Administrator(ctx)
	if err != nil {
		return diag.Wrap("management cluster "+h.name, err, "check the context with kubectl, and that its credentials have not expired")
	}
	if !admin {
		return diag.Errorf("providers come with roles of their own: have an administrator bind the cluster role cluster-admin to the user, or "+
			"name another context",
			"management cluster %s: the context's user is not an administrator of %s", h.name, h.client.Server())
	}
	return nil
}

// Start returns State, because only the user can start the cluster.
func (h *Host) Start(ctx context.Context, _ func(string)) (host.State, error) { return h.State(ctx) }

func (h *Host) unreachable(err error) error {
	return diag.Wrap(fmt.Sprintf("reach management cluster %s at %s", h.name, h.client.Server()), err,
		"check the context with kubectl, and that its credentials have not expired")
}

// LoadImages fails if there are images to load, because fleetctl cannot put images into the nodes of an existing cluster.
func (h *Host) LoadImages(_ context.Context, images host.ImageArchive, _ func(string)) error {
	if images == nil || len(images.Names()) == 0 {
		return nil
	}
	return diag.Errorf("push the bundle's images to a registry that the cluster reaches, and leave out --bundle",
		"management cluster %s is an existing cluster: fleetctl cannot load %s into it", h.name,
		plain.Count(len(images.Names()), "image"))
}

// Delete removes nothing, because the cluster belongs to the user. leftovers says what is still installed, and how to remove it.
func (h *Host) Delete(context.Context) (leftovers []string, err error) {
	return []string{fmt.Sprintf(
		"the cluster at %s, which is yours, with Cluster API and Flux on it (`clusterctl delete --all` and `flux uninstall` remove them)",
		h.client.Server())}, nil
}

// Kubeconfig returns a kubeconfig that has only the named context and names no files.
func (h *Host) Kubeconfig(context.Context) ([]byte, error) { return h.kubeconfig, nil }

// Gateway returns an error, because it is unknown how the cluster's pods could reach this machine.
func (h *Host) Gateway(context.Context) (host.Gateway, error) {
	return host.Gateway{}, diag.Errorf("give the fleet repo a remote that the cluster reaches (spec.git.url)",
		"management cluster %s is an existing cluster: it cannot fetch a fleet repo from this machine", h.name)
}
