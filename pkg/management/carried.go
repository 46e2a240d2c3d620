package management

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// ForgetCarried removes what this machine knows of the management cluster that ran on a workload cluster of the target. Call it once this
// workload cluster is deleted: otherwise every later command would wait for an API server that does not exist any more. It removes nothing
// if the fleet repo does not declare the target as the parent, and nothing that leads to another server. left lists the Clusters that the
// target still has: one of the same name in another namespace may be the one that carries the management cluster. The deletion is done,
// whatever this machine remembers, so what cannot be forgotten is a warning.
func (t *Target) ForgetCarried(ctx context.Context, deps Deps, name string, left func(context.Context) ([]capi.Cluster, error)) {
	err := t.forgetCarried(ctx, name, left)
	if err == nil {
		return
	}
	if _, gone := os.Stat(t.store.Cluster(name).Dir); errors.Is(gone, fs.ErrNotExist) {
		deps.Report.Warn(diag.InLine(err))
		return
	}
	deps.Report.Warn(fmt.Sprintf("the cluster %s is deleted, but this machine may still remember a management cluster that ran on it: remove "+
		"the folder %s if that one was not moved to another cluster %s", name, t.store.Cluster(name).Dir, diag.Because(err)))
}

func (t *Target) forgetCarried(ctx context.Context, name string, left func(context.Context) ([]capi.Cluster, error)) error {
	c := t.store.Cluster(name)
	if _, err := os.Stat(c.Path(hosts.WorkloadKubeconfigFile)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	repo := t.repo
	if repo == nil && t.Record != nil {
		var err error
		if repo, err = ownership.RepoAt(t.Record.Repo); err != nil {
			return err
		}
	}
	if repo == nil || repo.Parents[name] != t.Name {
		return nil
	}
	others, err := left(ctx)
	if err != nil || slices.ContainsFunc(others, func(other capi.Cluster) bool { return other.Name == name }) {
		return err
	}
	unlock, err := c.Lock("fleetctl, which forgets a deleted management cluster")
	if err != nil {
		return err
	}
	defer unlock()
	record, err := c.Load()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return forgetWay(c)
	case err != nil:
		return err
	case !carried(record, c, repo):
		return nil
	}
	if record.MergedInto != "" {
		if _, failed := kube.RemoveFromKubeconfig(ctx, record.MergedInto, ContextName(name)); failed != nil {
			err = fmt.Errorf("remove the context %s from %s: %w", ContextName(name), record.MergedInto, failed)
		}
	}
	return errors.Join(c.Remove(), err)
}

// forgetWay removes the way that the parent gave to this machine. Without a record nothing tells where a kubeconfig beside it leads:
// somebody may have removed the damaged record of a management cluster that was pivoted elsewhere.
func forgetWay(c state.Cluster) error {
	if _, err := os.Stat(c.Path(KubeconfigFile)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return c.Remove()
		}
		return err
	}
	return os.Remove(c.Path(hosts.WorkloadKubeconfigFile))
}

// carried tells whether a record leads to the workload cluster whose kubeconfig the parent gave to this machine.
func carried(record *state.Record, c state.Cluster, repo *ownership.Repo) bool {
	ours := record.FleetID == repo.ID || slices.Contains(repo.Elsewhere, record.Name) // that one has an identity of its own
	if !ours || record.PivotedTo != "" {
		return false
	}
	if !record.Connected {
		return record.HostType == string(v1alpha1.HostWorkload)
	}
	given, there := serverOf(record.KubeconfigSource, record.Context), serverOf(c.Path(hosts.WorkloadKubeconfigFile), record.Name)
	return there != "" && given == there
}

// serverOf returns the server of a context in a kubeconfig; "" if that cannot be read.
func serverOf(path, context string) string {
	content, err := hosts.Kubeconfig(path, context)
	if err != nil {
		return ""
	}
	client, err := kube.New(content, kube.Options{})
	if err != nil {
		return ""
	}
	return client.Host()
}
