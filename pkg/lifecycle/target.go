package lifecycle

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// Target is a management cluster that an earlier command made, as the commands that look at it or remove it find it again.
type Target struct {
	Name    string
	Cluster state.Cluster
	// Record is nil where this machine remembers nothing of it.
	Record *state.Record
}

// ErrUnknownCluster says that this machine knows no such management cluster.
var ErrUnknownCluster = errors.New("no such management cluster is known on this machine")

// FindTarget finds the management cluster called name; with an empty name it is the one whose fleet repo is dir, or the only
// one that there is.
func FindTarget(store state.Store, name, dir string) (*Target, error) {
	if name != "" {
		if name != filepath.Base(name) || name == "." || name == ".." { // it is a folder's name too
			return nil, diag.Usage("give the name of a management cluster, as in fleet.yaml", "%.80q cannot be the name of a management cluster", name)
		}
		t := &Target{Name: name, Cluster: store.Cluster(name)}
		r, err := t.Cluster.Load()
		if errors.Is(err, fs.ErrNotExist) {
			return t, nil
		}
		t.Record = r
		return t, err
	}
	records, err := store.List()
	if err != nil {
		return nil, err
	}
	here := records[:0:0]
	for _, r := range records {
		if r.Repo == dir {
			here = append(here, r)
		}
	}
	if len(here) == 0 {
		here = records
	}
	switch len(here) {
	case 0:
		return nil, diag.Wrap("find the management cluster", ErrUnknownCluster, "run `fleetctl init`, or name one with --cluster")
	case 1:
		return &Target{Name: here[0].Name, Cluster: store.Cluster(here[0].Name), Record: &here[0]}, nil
	}
	names := make([]string, 0, len(here))
	for _, r := range here {
		names = append(names, r.Name)
	}
	return nil, diag.Usage("choose one with --cluster", "this machine has several management clusters: %s", strings.Join(names, ", "))
}

// Host of the target. Without a record it is looked for: the state folder may have been lost.
func (t *Target) Host(ctx context.Context) (host.Host, error) {
	if t.Record != nil {
		return hosts.Remembered(ctx, t.Record, t.Cluster)
	}
	return hosts.Find(ctx, t.Name, t.Cluster)
}

// Kubeconfig of the target, from its host; after a pivot it is the one of the cluster that took over.
func (t *Target) Kubeconfig(ctx context.Context) ([]byte, error) {
	if t.pivoted() {
		raw, err := os.ReadFile(t.Cluster.Path(kubeconfigFile))
		return raw, diag.Wrap("read the kubeconfig of "+t.Record.PivotedTo, err, "")
	}
	h, err := t.Host(ctx)
	if err != nil {
		return nil, err
	}
	st, err := h.State(ctx)
	if err != nil {
		return nil, err
	}
	switch st {
	case host.StateRunning:
		return h.Kubeconfig(ctx)
	case host.StateAbsent:
		return nil, diag.NotReady("make it with `fleetctl init`", "the management cluster %s does not exist", t.Name)
	case host.StateStopped:
		return nil, diag.NotReady("start it with `fleetctl host start`", "the management cluster %s is stopped", t.Name)
	case host.StateBroken:
		return nil, diag.NotReady("finish it with `fleetctl init`", "the management cluster %s is half made", t.Name)
	case host.StateForeign:
	}
	return nil, diag.Errorf("choose another name", "there is a cluster %s that fleetctl did not make", t.Name)
}

// Client of the target.
func (t *Target) Client(ctx context.Context) (*kube.Client, error) {
	kubeconfig, err := t.Kubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	return kube.New(kubeconfig, kube.Options{})
}

// KubeconfigOptions say which kubeconfig is wanted.
type KubeconfigOptions struct {
	Target *Target
	// Workload is NAME or NAMESPACE/NAME of a workload cluster; empty: the management cluster itself.
	Workload string
	// Declared says that the fleet repo has that workload cluster: where it is not there, it is not there yet.
	Declared bool
	// MergeInto is a kubeconfig file that gets a context for it.
	MergeInto string
	// OutputFile is a private file that it is written to.
	OutputFile string
}

// Kubeconfig returns a kubeconfig for the management cluster or one of its workload clusters.
func Kubeconfig(ctx context.Context, _ Deps, o KubeconfigOptions) ([]byte, error) {
	content, err := o.Target.Kubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	name := o.Target.Name
	if o.Workload != "" {
		client, err := kube.New(content, kube.Options{})
		if err != nil {
			return nil, err
		}
		manager, err := capi.New(client)
		if err != nil {
			return nil, err
		}
		cluster, err := findCluster(ctx, manager, o.Workload)
		if o.Declared && diag.Code(err) == diag.ExitUsage {
			return nil, diag.NotReady("`fleetctl status` shows what Flux has applied", "the management cluster %s has not made cluster %s yet", o.Target.Name, o.Workload)
		}
		if err != nil {
			return nil, err
		}
		content, err = manager.WorkloadKubeconfig(ctx, cluster.Key())
		if kube.IsAbsent(err) {
			return nil, diag.NotReady("`fleetctl status` shows how far it is", "cluster %s has no kubeconfig yet", cluster.FullName())
		}
		if err != nil {
			return nil, err
		}
		name = cluster.Name
	}
	if o.OutputFile != "" {
		return content, kube.WriteKubeconfig(o.OutputFile, content)
	}
	if o.MergeInto == "" {
		return content, nil
	}
	if err := kube.MergeKubeconfig(ctx, o.MergeInto, contextName(name), content); err != nil {
		return nil, err
	}
	if o.Workload == "" && o.Target.Record != nil {
		r := *o.Target.Record
		r.MergedInto = o.MergeInto
		return content, o.Target.Cluster.Save(r)
	}
	return content, nil
}

// findCluster finds a workload cluster by NAME or NAMESPACE/NAME.
func findCluster(ctx context.Context, manager *capi.Manager, wanted string) (*capi.Cluster, error) {
	clusters, err := manager.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	var found []capi.Cluster
	for _, c := range clusters {
		if wanted == c.Name || wanted == c.FullName() {
			found = append(found, c)
		}
	}
	switch len(found) {
	case 1:
		return &found[0], nil
	case 0:
		hint := "there are none"
		if len(clusters) > 0 {
			hint = "there are: " + strings.Join(fullNames(clusters), ", ")
		}
		return nil, diag.Usage(hint, "no workload cluster %s", wanted)
	}
	return nil, diag.Usage("write NAMESPACE/NAME: "+strings.Join(fullNames(found), " or "), "there are %d workload clusters called %s", len(found), wanted)
}

// fullNames are the clusters as NAMESPACE/NAME.
func fullNames(clusters []capi.Cluster) []string {
	names := make([]string, 0, len(clusters))
	for _, c := range clusters {
		names = append(names, c.FullName())
	}
	return names
}

// WorkloadNames lists the workload clusters of the target as NAMESPACE/NAME.
func WorkloadNames(ctx context.Context, t *Target) ([]string, error) {
	client, err := t.Client(ctx)
	if err != nil {
		return nil, err
	}
	manager, err := capi.New(client)
	if err != nil {
		return nil, err
	}
	clusters, err := manager.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	return fullNames(clusters), nil
}
