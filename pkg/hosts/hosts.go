// Package hosts alone knows which kinds of hosts there are. It makes the host that fleet.yaml declares or the state folder remembers, and
// tells a workflow the traits of a host that does not exist yet.
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
	// WorkloadKubeconfigFile is the kubeconfig of the workload cluster that carries a management cluster. The parent has made it.
	WorkloadKubeconfigFile = "workload-kubeconfig"
)

// ImageDir is the store of unpacked images below a user's cache folder, which all embedded hosts share.
func ImageDir(cacheDir string) string { return filepath.Join(cacheDir, "images") }

// New returns the host that is declared for the management cluster called name. It changes nothing. The host keeps its files in the state
// folder cluster. A new host unpacks images to imageDir; an existing host remembers its own folder. Errors: an unknown type, a declaration
// that lacks something, and for kind an *engine.NotFoundError if no container engine answers.
func New(ctx context.Context, name string, declared v1alpha1.Host, cluster state.Cluster, imageDir string) (host.Host, error) {
	if k, ok := kinds[declared.Type]; ok {
		return k.make(ctx, place{name: name, declared: declared, cluster: cluster, imageDir: imageDir})
	}
	return nil, fmt.Errorf("host type %q is not known", declared.Type)
}

// Programs returns the programs that a declared host takes from images, for a Kubernetes version such as "v1.36.3". "" means the host's
// default version. A host that brings its own programs has none.
func Programs(declared v1alpha1.Host, kubernetesVersion string) []host.Program {
	if declared.Type != v1alpha1.HostEmbedded {
		return nil
	}
	return embedded.Programs(kubernetesVersion)
}

// Mirrors returns the mirrors that a declared host asks instead of registries, by the name of the registry.
func Mirrors(declared v1alpha1.Host) map[string]string { return mirrorsOf(declared.Embedded) }

// Kubeconfig reads a kubeconfig and returns one context of it as a kubeconfig that needs no other file. The name "" means the current
// context, and the path "" the kubeconfig that kubectl would use. Errors: a file that cannot be read, and a context that it does not have.
func Kubeconfig(path, name string) ([]byte, error) { return existing.Kubeconfig(path, name) }

// issuerOf returns the declared issuer; nil if none is declared.
func issuerOf(e *v1alpha1.EmbeddedHost) *string {
	if e == nil {
		return nil
	}
	return &e.ServiceAccountIssuer
}

// mirrorsOf returns the declared mirrors by registry; nil if none is declared.
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

// Remembered returns the host of a management cluster that an earlier run made, from its record in the state folder. It has the errors of
// New.
func Remembered(ctx context.Context, r *state.Record, cluster state.Cluster) (host.Host, error) {
	declared := v1alpha1.Host{Type: v1alpha1.HostType(r.HostType)}
	if k := kinds[declared.Type]; k.remember != nil {
		k.remember(r, &declared)
	}
	return New(ctx, r.Name, declared, cluster, "")
}

// Find returns the host of a management cluster without a record, because the state folder may have been lost. A declared type other than
// kind decides. Otherwise Find looks: an embedded host has its data in the state folder, and any other host is a kind cluster. Without a
// container engine there is no kind cluster, and Find returns an embedded host. It has the errors of New.
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

// Wishes are the user's options for the host of a new management cluster. An empty field leaves the choice open.
type Wishes struct {
	Type v1alpha1.HostType
	// Context and Kubeconfig name an existing cluster.
	Context, Kubeconfig string
	// NodeImage is the container image of a kind node.
	NodeImage string
}

// Declare turns wishes into a declaration for fleet.yaml. If they leave the type open, fallback chooses it. Error: an existing cluster
// without a context, which is an error of usage.
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

// Default returns the type of host if nobody chooses one: kind if detect finds a container engine, or else embedded if this system supports
// it. If neither is possible, Default returns kind, and preflight says what to install.
func Default(detect func() error) v1alpha1.HostType {
	if embedded.Supported() == nil && detect() != nil {
		return v1alpha1.HostEmbedded
	}
	return v1alpha1.HostKind
}

// NewEphemeral returns an embedded host in dir that ends with this process, even if the process is killed. Its data is lost then.
func NewEphemeral(name, dir, imageDir string) (host.Companion, error) {
	h, err := embedded.New(name, embedded.Options{StateDir: dir, ImageDir: imageDir, Ephemeral: true})
	if err != nil {
		return nil, err
	}
	return h, nil
}
