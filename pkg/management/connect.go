package management

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// ContextName is the context that a management cluster has in the user's kubeconfig.
func ContextName(cluster string) string { return "fleetctl-" + cluster }

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
func Kubeconfig(ctx context.Context, o KubeconfigOptions) ([]byte, error) {
	content, err := o.Target.Kubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	name, merge := o.Target.Name, kube.MergeKubeconfig
	if o.Workload != "" {
		client, err := kube.New(content, kube.Options{})
		if err != nil {
			return nil, err
		}
		manager, err := capi.New(client)
		if err != nil {
			return nil, err
		}
		cluster, err := FindCluster(ctx, manager, o.Workload)
		if o.Declared && diag.Code(err) == diag.ExitUsage {
			return nil, diag.NotReady("`fleetctl status` shows what Flux has applied", "the management cluster %s has not made cluster %s yet",
				o.Target.Name, o.Workload)
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
		of := o.Target.Name + "/" + cluster.FullName() // whoever may make a Cluster chooses its name: that of the management cluster, say
		merge = func(ctx context.Context, path, name string, kubeconfig []byte) error {
			return kube.MergeKubeconfigOf(ctx, path, name, of, kubeconfig)
		}
	}
	if o.OutputFile != "" {
		return content, kube.WriteKubeconfig(o.OutputFile, content)
	}
	if o.MergeInto == "" {
		return content, nil
	}
	if err := merge(ctx, o.MergeInto, ContextName(name), content); err != nil {
		return nil, err
	}
	if o.Workload == "" && o.Target.Record != nil {
		return content, o.Target.noteMerged(o.MergeInto)
	}
	return content, nil
}

// noteMerged notes in this machine's record that the user's kubeconfig has a context for the target. It reads the record again, because a
// pivot may have written it since the target was found, or a teardown may have removed it: the pivot would be forgotten otherwise.
func (t *Target) noteMerged(into string) error {
	r, err := t.Cluster.Load()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	r.MergedInto = into
	return t.Cluster.Save(*r)
}

// FindCluster finds a workload cluster by NAME or NAMESPACE/NAME.
func FindCluster(ctx context.Context, manager *capi.Manager, wanted string) (*capi.Cluster, error) {
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
			hint = "there are: " + strings.Join(FullNames(clusters), ", ")
		}
		return nil, diag.Usage(hint, "no workload cluster %s", wanted)
	}
	return nil, diag.Usage("write NAMESPACE/NAME: "+strings.Join(FullNames(found), " or "),
		"there are %s called %s", plain.Count(len(found), "workload cluster"), wanted)
}

// FullNames are the clusters as NAMESPACE/NAME.
func FullNames(clusters []capi.Cluster) []string {
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
	clusters, err := Clusters(ctx, client)
	return FullNames(clusters), err
}

// Clusters lists the workload clusters of a management cluster.
func Clusters(ctx context.Context, client *kube.Client) ([]capi.Cluster, error) {
	manager, err := capi.New(client)
	if err != nil {
		return nil, err
	}
	return manager.Clusters(ctx)
}

// Reach connects to the cluster on a host that runs.
func Reach(ctx context.Context, h host.Host) (*kube.Client, error) {
	kubeconfig, err := h.Kubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	return kube.New(kubeconfig, kube.Options{})
}

// Appeared is an error that names the clusters in now that are not in before.
func Appeared(management string, before, now []capi.Cluster, since string) error {
	known := map[kube.Key]bool{}
	for _, c := range before {
		known[c.Key()] = true
	}
	unknown := slices.DeleteFunc(slices.Clone(now), func(c capi.Cluster) bool { return known[c.Key()] })
	if len(unknown) == 0 {
		return nil
	}
	return diag.Errorf("look at them with `fleetctl status`, then run the same command again: these were not touched",
		"on the management cluster %s workload clusters have appeared %s: %s", management, since, strings.Join(FullNames(unknown), ", "))
}

// SameCluster tells whether NAME or NAMESPACE/NAME is that cluster.
func SameCluster(wanted, full string) bool {
	return wanted == full || "/"+wanted == full[len(full)-min(len(full), len(wanted)+1):]
}
