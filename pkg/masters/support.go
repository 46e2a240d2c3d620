package masters

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// withSupport gathers support bundles after a failure: of the parent, unless its own bootstrap has gathered one, and of the new management
// cluster, if this answers. A pull request that is to be merged is no failure, nor is a refusal to begin. withSupport returns err.
func (m *master) withSupport(ctx context.Context, err error) error {
	if err == nil || !m.works || m.waits {
		return err
	}
	if m.result.SupportBundle == "" {
		if t, findErr := management.Find(m.Store, m.result.Parent, m.opts.Dir); findErr == nil {
			file := cmp.Or(m.opts.SupportFile, t.Cluster.Path(management.SupportFile))
			m.result.SupportBundle = management.SupportOfFailure(ctx, m.Report, t, file, err)
		}
	}
	if t := m.newOne(ctx); t != nil {
		m.result.ClusterSupportBundle = management.SupportOfFailure(ctx, m.Report, t, m.supportFile(t), err)
	}
	return err
}

// newOne finds the new management cluster, and nil if it does not answer. Before init has its record, only the kubeconfig is there that the
// parent has given.
func (m *master) newOne(ctx context.Context) *management.Target {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), session.LookTimeout)
	defer cancel()
	name, store := m.result.Cluster, m.Store
	way := store.Cluster(name).Path(hosts.WorkloadKubeconfigFile)
	if _, err := os.Stat(way); err == nil {
		if _, err := store.Cluster(name).Load(); err != nil {
			store.Given = &state.Given{Name: name, Kubeconfig: way, Context: name}
		}
	}
	t, err := management.Find(store, name, m.dirOf(name))
	if err != nil || !t.Known() {
		return nil
	}
	client, err := t.Client(ctx)
	if err != nil {
		return nil
	}
	if _, err := client.ServerVersion(ctx); err != nil {
		return nil
	}
	return t
}

// supportFile is the file for the bundle of the new management cluster. The file that the user has named is the parent's, if the parent has
// a bundle; then this one stands beside it.
func (m *master) supportFile(t *management.Target) string {
	named := m.opts.SupportFile
	if named == "" {
		return t.Cluster.Path(management.SupportFile)
	}
	if m.result.SupportBundle == "" {
		return named
	}
	dir, file := filepath.Split(named)
	base, extension, _ := strings.Cut(file, ".")
	if extension != "" {
		extension = "." + extension
	}
	return filepath.Join(dir, base+"-"+t.Name+extension)
}
