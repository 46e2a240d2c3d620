package lifecycle

import (
	"context"
	"fmt"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/existing"
	"github.com/fleetctl/fleetctl/pkg/host/kind"
	"github.com/fleetctl/fleetctl/pkg/state"
	"github.com/fleetctl/fleetctl/pkg/version"
)

// Files of a management cluster's state folder.
const (
	kubeconfigFile = "kubeconfig"
	deployKeyFile  = "deploy-key"
	gitServeDir    = "git-serve"
)

// newHost is the only place that knows which hosts there are.
func newHost(ctx context.Context, name string, declared v1alpha1.Host, cluster state.Cluster) (host.Host, error) {
	switch declared.Type {
	case v1alpha1.HostExisting:
		return existing.New(name, existing.Options{
			Kubeconfig: declared.Existing.Kubeconfig, Context: declared.Existing.Context,
		})
	case v1alpha1.HostKind:
		return kind.New(ctx, name, kind.Options{StateDir: cluster.Path("kind")})
	}
	return nil, fmt.Errorf("host type %q is not known", declared.Type)
}

// hostOf rebuilds the host of a management cluster that an earlier run made, from what the state folder remembers.
func hostOf(ctx context.Context, r *state.Record, cluster state.Cluster) (host.Host, error) {
	declared := v1alpha1.Host{Type: v1alpha1.HostType(r.HostType)}
	if declared.Type == v1alpha1.HostExisting {
		declared.Existing = &v1alpha1.ExistingHost{Kubeconfig: r.KubeconfigSource, Context: r.Context}
	}
	return newHost(ctx, r.Name, declared, cluster)
}

// defaultKubernetesVersion is that of the management clusters which this fleetctl makes where nobody chooses.
func defaultKubernetesVersion() string {
	_, version, _ := strings.Cut(kind.NodeImage(""), ":")
	return version
}

// defaults are the versions that this fleetctl was built with.
func defaults() v1alpha1.Defaults {
	return v1alpha1.Defaults{FluxVersion: version.Library("flux2"), CAPIVersion: version.Library("cluster-api")}
}
