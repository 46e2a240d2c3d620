package management

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// ForgetCarried removes what this machine knows of the management cluster that ran on a workload cluster of the target. Call it once this
// workload cluster is deleted: otherwise every later command would wait for an API server that does not exist any more. It removes nothing
// if the fleet repo does not declare the target as the parent, and nothing that leads to another server.
func (t *Target) ForgetCarried(ctx context.Context, name string) error {
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
	c := t.store.Cluster(name)
	if _, err := os.Stat(c.Path(hosts.WorkloadKubeconfigFile)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	unlock, err := c.Lock("fleetctl, which forgets a deleted management cluster")
	if err != nil {
		return err
	}
	defer unlock()
	record, err := c.Load()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if record != nil && !carried(record, c, repo) {
		return nil
	}
	if record != nil && record.MergedInto != "" {
		if _, err := kube.RemoveFromKubeconfig(ctx, record.MergedInto, ContextName(name)); err != nil {
			return err
		}
	}
	return diag.Wrap(fmt.Sprintf("forget the deleted management cluster %s", name), c.Remove(), "")
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
