package management

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// FluxObject names an object of Flux on the management cluster, or on the workload cluster that Cluster names.
type FluxObject struct {
	Cluster         string
	Kind            string
	Namespace, Name string
}

// Switched is the result for one object.
type Switched struct {
	ManagementCluster string `json:"managementCluster"`
	Cluster           string `json:"cluster,omitempty"`
	Kind              string `json:"kind"`
	Namespace         string `json:"namespace"`
	Name              string `json:"name"`
	Changed           bool   `json:"changed"`
	Absent            bool   `json:"absent,omitempty"`
	// InGit: Git says that it is suspended.
	InGit bool `json:"inGit"`
}

// SetSuspended suspends objects of Flux at once, or lets Flux go on with them, on the target and on its workload clusters. All are tried:
// what was done is returned with the errors of the others.
func SetSuspended(ctx context.Context, t *Target, objects []FluxObject, suspended bool) ([]Switched, error) {
	client, err := t.Client(ctx)
	if err != nil {
		return nil, err
	}
	journal, err := handover.ReadJournal(ctx, client)
	if err != nil {
		return nil, err
	}
	systems := map[string]*flux.System{"": flux.NewSystem(client)}
	var all []Switched
	var failed []error
	dead := map[string]bool{}
	for _, o := range objects {
		if dead[o.Cluster] {
			continue
		}
		if handedOver(journal, o) {
			return all, errors.Join(append(failed, handover.Restorable("management cluster "+t.Name, journal))...)
		}
		if systems[o.Cluster] == nil {
			if systems[o.Cluster], err = workloadFlux(ctx, client, o.Cluster); err != nil {
				failed, dead[o.Cluster] = append(failed, err), true
				continue
			}
		}
		ref, err := flux.RefTo(o.Kind, kube.Key{Namespace: o.Namespace, Name: o.Name})
		if err != nil {
			return all, err
		}
		done, err := systems[o.Cluster].SetSuspended(ctx, []kube.Ref{ref}, suspended)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", cmp.Or(o.Cluster, t.Name), err))
			dead[o.Cluster] = kube.IsUnreachable(err)
			continue
		}
		for _, d := range done {
			all = append(all, Switched{
				ManagementCluster: t.Name, Cluster: o.Cluster, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Changed: d.Changed,
				Absent: d.Absent, InGit: d.InGit,
			})
		}
	}
	return all, errors.Join(failed...)
}

// handedOver tells of an object of Flux on the management cluster whether it is in the midst of a hand-over. Such a hand-over has suspended
// it and recorded its state: a change would let Flux act on what is being handed over, or would be lost at the end. Objects of a cluster
// that is not handed over are free, and so is what is on a workload cluster.
func handedOver(journal *handover.Journal, o FluxObject) bool {
	if !journal.Active() || o.Cluster != "" {
		return false
	}
	return journal.Whole() || slices.ContainsFunc(journal.Select, func(cluster string) bool {
		namespace, _, _ := strings.Cut(cluster, "/")
		return namespace == o.Namespace
	})
}

// workloadFlux is the Flux of a workload cluster, which stands in the namespace of its name.
func workloadFlux(ctx context.Context, client *kube.Client, name string) (*flux.System, error) {
	manager, err := capi.New(client)
	if err != nil {
		return nil, err
	}
	cluster, err := FindCluster(ctx, manager, name)
	if diag.Code(err) == diag.ExitUsage {
		return nil, diag.NotReady("`fleetctl why "+name+"` tells how far it has come", "the management cluster has not made cluster %s yet", name)
	}
	if err != nil {
		return nil, err
	}
	return WorkloadFlux(ctx, manager, cluster.Key())
}

// WorkloadFlux is the Flux of a workload cluster. It reads the cluster's kubeconfig from the management cluster; errors of the workload
// cluster itself come from what is asked then.
func WorkloadFlux(ctx context.Context, manager *capi.Manager, cluster kube.Key) (*flux.System, error) {
	kubeconfig, err := manager.WorkloadKubeconfig(ctx, cluster)
	if err != nil {
		return nil, err
	}
	workload, err := kube.New(kubeconfig, kube.Options{MostBytes: kube.MostOfWorkload})
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", cluster, err)
	}
	return flux.NewSystem(workload), nil
}
