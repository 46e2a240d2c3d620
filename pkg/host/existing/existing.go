// Package existing carries a management cluster on a cluster that the user already has. It makes and removes nothing: what
// fleetctl installed there is removed by the workflows that installed it.
package existing

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/internal/apiserver"
)

// Options names the cluster.
type Options struct {
	// Kubeconfig is the path of the file; empty follows $KUBECONFIG and then the one in the home folder.
	Kubeconfig string
	// Context in it. It must be named: nothing is ever installed into a cluster because it happened to be the current one.
	Context string
}

// Host is a management cluster on a cluster of the user's. It implements host.Host.
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

// New reads the kubeconfig and connects to nothing yet. The error has a hint when the context is not named or not there.
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

// Kubeconfig reads a context of a kubeconfig file, or with "" the current one, so that it stands alone. The path "" follows $KUBECONFIG and then the one
// in the home folder.
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

// State is running if the API server is ready. One that cannot be reached is an error and not absent: fleetctl cannot make
// it.
func (h *Host) State(ctx context.Context) (host.State, error) {
	if err := h.client.Ready(ctx); err != nil {
		return "", h.unreachable(err)
	}
	return host.StateRunning, nil
}

// Create checks that the API server is ready and that we may install into it. Images and mounts are not its business.
func (h *Host) Create(ctx context.Context, opts host.CreateOptions) error {
	if err := h.CheckAccess(ctx); err != nil {
		return err
	}
	if opts.Answers != nil {
		opts.Answers(h.kubeconfig)
	}
	return nil
}

// CheckAccess is an error where the API server is not ready, or the context's user may not install into it.
func (h *Host) CheckAccess(ctx context.Context) error {
	if err := h.client.Ready(ctx); err != nil {
		return h.unreachable(err)
	}
	admin, err := h.client.Administrator(ctx)
	if err != nil {
		return diag.Wrap("management cluster "+h.name, err, "check the context with kubectl, and that its credentials have not expired")
	}
	if !admin {
		return diag.Errorf("providers come with roles of their own: have an administrator bind the cluster role cluster-admin to the user, or name another context",
			"management cluster %s: the context's user is no administrator of %s", h.name, h.client.Server())
	}
	return nil
}

// Start is State: starting a cluster of the user's is the user's business.
func (h *Host) Start(ctx context.Context, _ func(string)) (host.State, error) { return h.State(ctx) }

func (h *Host) unreachable(err error) error {
	return diag.Wrap(fmt.Sprintf("reach management cluster %s at %s", h.name, h.client.Server()), err,
		"check the context with kubectl, and that its credentials have not expired")
}

// LoadImages fails if there are images to load: nobody but its registry puts images into a cluster's nodes.
func (h *Host) LoadImages(_ context.Context, images host.ImageArchive, _ func(string)) error {
	if images == nil || len(images.Names()) == 0 {
		return nil
	}
	return diag.Errorf("push the bundle's images to a registry that the cluster reaches, and leave out --bundle",
		"management cluster %s is an existing cluster: its %d images cannot be loaded into it", h.name, len(images.Names()))
}

// Delete removes nothing: the cluster is the user's. It says what is still there, and how to remove that.
func (h *Host) Delete(context.Context) (leftovers []string, err error) {
	return []string{fmt.Sprintf("the cluster at %s, which is yours, with Cluster API and Flux on it (`clusterctl delete --all` and `flux uninstall` remove them)",
		h.client.Server())}, nil
}

// Kubeconfig has only the named context, and stands alone.
func (h *Host) Kubeconfig(context.Context) ([]byte, error) { return h.kubeconfig, nil }

// Gateway is an error: nothing says how pods of that cluster could reach this machine.
func (h *Host) Gateway(context.Context) (host.Gateway, error) {
	return host.Gateway{}, diag.Errorf("give the fleet repo a remote that the cluster reaches (spec.git.url)",
		"management cluster %s is an existing cluster: it cannot fetch a fleet repo from this machine", h.name)
}
