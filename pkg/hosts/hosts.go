// Package hosts is the only one that knows which hosts there are. It makes the one that fleet.yaml declares or the state folder remembers,
// and tells what a workflow has to know of a host before there is one.
package hosts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/embedded"
	"github.com/fleetctl/fleetctl/pkg/host/engine"
	"github.com/fleetctl/fleetctl/pkg/host/existing"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// Files of a management cluster's state folder.
const (
	kindDir     = "kind"
	embeddedDir = "embedded"
	// WorkloadKubeconfigFile is what the parent made for the workload cluster that carries a management cluster.
	WorkloadKubeconfigFile = "workload-kubeconfig"
)

// ImageDir is the store of unpacked images below a user's cache folder, which all embedded hosts share.
func ImageDir(cacheDir string) string { return filepath.Join(cacheDir, "images") }

// New returns the host that is declared for the management cluster of that name, which keeps its files in its state folder. It changes
// nothing. imageDir is where a new host unpacks images; one that is there remembers its own.
func New(ctx context.Context, name string, declared v1alpha1.Host, cluster state.Cluster, imageDir string) (host.Host, error) {
	if k, ok := kinds[declared.Type]; ok {
		return k.make(ctx, place{name: name, declared: declared, cluster: cluster, imageDir: imageDir})
	}
	return nil, fmt.Errorf("host type %q is not known", declared.Type)
}

// Programs returns the programs that a declared host takes from images, for a Kubernetes version, which may be empty. A host that brings
// its own programs has none.
func Programs(declared v1alpha1.Host, kubernetesVersion string) []host.Program {
	if declared.Type != v1alpha1.HostEmbedded {
		return nil
	}
	return embedded.Programs(kubernetesVersion)
}

// Mirrors are what a declared host asks in the place of registries.
func Mirrors(declared v1alpha1.Host) map[string]string { return mirrorsOf(declared.Embedded) }

// Kubeconfig reads a context, or with "" the current one, of the kubeconfig of a cluster, so that it stands alone. With the path "" it is
// the kubeconfig that kubectl would use.
func Kubeconfig(path, name string) ([]byte, error) { return existing.Kubeconfig(path, name) }

// issuerOf is the declared issuer; nil where nothing is declared.
func issuerOf(e *v1alpha1.EmbeddedHost) *string {
	if e == nil {
		return nil
	}
	return &e.ServiceAccountIssuer
}

// mirrorsOf are the declared mirrors by registry; nil where nothing is declared.
func mirrorsOf(e *v1alpha1.EmbeddedHost) map[string]string {
	if e == nil {
		return nil
	}
	mirrors := map[string]string{}
	for _, m := range e.Mirrors {
		mirrors[m.Registry] = m.Mirror
	}
	return mirrors
}

// Remembered returns the host of a management cluster that an earlier run made, from what the state folder remembers.
func Remembered(ctx context.Context, r *state.Record, cluster state.Cluster) (host.Host, error) {
	declared := v1alpha1.Host{Type: v1alpha1.HostType(r.HostType)}
	if k := kinds[declared.Type]; k.remember != nil {
		k.remember(r, &declared)
	}
	return New(ctx, r.Name, declared, cluster, "")
}

// Find returns the host of a management cluster of which no record is left, because the state folder may have been lost. A declared type
// other than kind names the host. Else it is looked for: an embedded host has its data in the state folder, and any other is a kind
// cluster. Without a container engine there is no kind cluster either.
func Find(ctx context.Context, name string, declared v1alpha1.HostType, cluster state.Cluster) (host.Host, error) {
	if declared != "" && declared != v1alpha1.HostKind {
		return New(ctx, name, v1alpha1.Host{Type: declared}, cluster, "")
	}
	inFolder := v1alpha1.Host{Type: v1alpha1.HostEmbedded}
	if _, err := os.Stat(cluster.Path(embeddedDir)); err == nil {
		return New(ctx, name, inFolder, cluster, "")
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for the host of management cluster %s: %w", name, err)
	}
	h, err := New(ctx, name, v1alpha1.Host{Type: v1alpha1.HostKind}, cluster, "")
	if none, ok := errors.AsType[*engine.NotFoundError](err); ok && len(none.Tried) == 0 {
		return New(ctx, name, inFolder, cluster, "")
	}
	return h, err
}

// Wishes are what somebody says of the host of a new management cluster. Empty fields leave it open.
type Wishes struct {
	Type v1alpha1.HostType
	// Context and Kubeconfig name an existing cluster.
	Context, Kubeconfig string
	// NodeImage is that of a kind node.
	NodeImage string
}

// Declare makes a declaration of wishes. Where they leave the type open, fallback chooses it.
func Declare(w Wishes, fallback func() v1alpha1.HostType) (v1alpha1.Host, error) {
	declared := v1alpha1.Host{Type: w.Type}
	if w.Type == v1alpha1.HostExisting {
		if w.Context == "" {
			return declared, diag.Usage("`kubectl config get-contexts` lists them; fleetctl never takes the current one",
				"--host existing needs --host-context, the context of the cluster")
		}
		declared.Existing = &v1alpha1.ExistingHost{Kubeconfig: w.Kubeconfig, Context: w.Context}
	}
	if w.NodeImage != "" {
		declared.Kind = &v1alpha1.KindHost{Image: w.NodeImage}
	} else if w.Type == "" {
		declared.Type = fallback()
	}
	return declared, nil
}

// Default is the type of host to take where nobody chooses: kind where a container engine answers, which detect looks for; else embedded
// where this system can. Where neither is possible it is kind, and preflight says what to install.
func Default(detect func() error) v1alpha1.HostType {
	if embedded.Supported() == nil && detect() != nil {
		return v1alpha1.HostEmbedded
	}
	return v1alpha1.HostKind
}

// NewEphemeral returns a host in dir that ends with this process, however this process ends. All its data ends with it.
func NewEphemeral(name, dir, imageDir string) (host.Companion, error) {
	h, err := embedded.New(name, embedded.Options{StateDir: dir, ImageDir: imageDir, Ephemeral: true})
	if err != nil {
		return nil, err
	}
	return h, nil
}
