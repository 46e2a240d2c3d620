package lifecycle

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/embedded"
	"github.com/fleetctl/fleetctl/pkg/host/existing"
	"github.com/fleetctl/fleetctl/pkg/host/kind"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// Files of a management cluster's state folder.
const (
	kubeconfigFile = "kubeconfig"
	deployKeyFile  = "deploy-key"
	gitServeDir    = "git-serve"
	embeddedDir    = "embedded"
	// workloadKubeconfigFile is what the parent made for the workload cluster that carries a management cluster.
	workloadKubeconfigFile = "workload-kubeconfig"
)

// newHost is the only place that knows which hosts there are. imageDir is where a new embedded host unpacks images; one that is
// there remembers its own.
func newHost(ctx context.Context, name string, declared v1alpha1.Host, cluster state.Cluster, imageDir string) (host.Host, error) {
	switch declared.Type {
	case v1alpha1.HostExisting:
		return existing.New(name, existing.Options{
			Kubeconfig: declared.Existing.Kubeconfig, Context: declared.Existing.Context,
		})
	case v1alpha1.HostWorkload:
		return existing.New(name, existing.Options{Kubeconfig: cluster.Path(workloadKubeconfigFile), Context: name})
	case v1alpha1.HostKind:
		return kind.New(ctx, name, kind.Options{StateDir: cluster.Path("kind")})
	case v1alpha1.HostEmbedded:
		// Never Ephemeral, which would end with this command: see Bootstrap.
		return embedded.New(name, embedded.Options{StateDir: cluster.Path(embeddedDir), ImageDir: imageDir, Mirrors: mirrorsOf(declared.Embedded)})
	}
	return nil, fmt.Errorf("host type %q is not known", declared.Type)
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

// hostOf rebuilds the host of a management cluster that an earlier run made, from what the state folder remembers.
func hostOf(ctx context.Context, r *state.Record, cluster state.Cluster) (host.Host, error) {
	declared := v1alpha1.Host{Type: v1alpha1.HostType(r.HostType)}
	if declared.Type == v1alpha1.HostExisting {
		declared.Existing = &v1alpha1.ExistingHost{Kubeconfig: r.KubeconfigSource, Context: r.Context}
	}
	return newHost(ctx, r.Name, declared, cluster, "")
}

// defaultKubernetesVersion is that of a management cluster which this fleetctl makes where nobody chooses.
func defaultKubernetesVersion(on v1alpha1.HostType) string {
	if on == v1alpha1.HostEmbedded {
		return embedded.DefaultKubernetesVersion
	}
	_, version, _ := strings.Cut(kind.NodeImage(""), ":")
	return version
}

// settleHostTypes fills in, before defaults do, what carries the management clusters of which fleet.yaml does not say it: what an
// earlier run chose, so that an engine that starts to answer does not move a cluster; kind where an engine answers; else embedded
// where this system can. Where neither is possible it stays kind, and preflight says what to install.
func (s *session) settleHostTypes(ctx context.Context, fleet *v1alpha1.Fleet) {
	for i := range fleet.Spec.ManagementClusters {
		m := &fleet.Spec.ManagementClusters[i]
		if m.Parent == "" && m.Host.Type == "" && m.Host.Kind == nil && m.Host.Embedded == nil && m.Host.Existing == nil {
			m.Host.Type = s.defaultHostType(ctx, m.Name)
		}
	}
}

func (s *session) defaultHostType(ctx context.Context, cluster string) v1alpha1.HostType {
	if r, err := s.Store.Cluster(cluster).Load(); err == nil && r.HostType != "" {
		return v1alpha1.HostType(r.HostType)
	}
	if embedded.Supported() != nil {
		return v1alpha1.HostKind
	}
	if _, err := s.detectEngine(ctx); err != nil {
		return v1alpha1.HostEmbedded
	}
	return v1alpha1.HostKind
}

// imageDir is the store of unpacked images that all embedded hosts of this user share.
func (d Deps) imageDir() string { return filepath.Join(d.CacheDir, "images") }

// defaults are the versions that this fleetctl was built with.
func defaults() v1alpha1.Defaults { return components.Defaults() }
