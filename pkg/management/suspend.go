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
	// Below means also the objects of Flux that this one, a Kustomization of the management cluster, has applied there.
	Below bool
	// InGit means that Git pauses what the object applies, without suspending the object itself.
	InGit bool
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
	// InGit: Git says that it is suspended, or that what it applies is.
	InGit bool `json:"inGit"`
	// Below: it goes along with a Kustomization that has applied it.
	Below bool `json:"below,omitempty"`
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
	w := &switching{target: t, journal: journal, systems: map[string]*flux.System{"": flux.NewSystem(client)}, suspended: suspended}
	dead := map[string]bool{}
	for _, o := range objects {
		if dead[o.Cluster] {
			continue
		}
		if handedOver(journal, o) {
			return w.all, errors.Join(append(w.failed, w.restorable())...)
		}
		if w.systems[o.Cluster] == nil {
			if w.systems[o.Cluster], err = workloadFlux(ctx, client, o.Cluster); err != nil {
				w.failed, dead[o.Cluster] = append(w.failed, err), true
				continue
			}
		}
		if err := w.one(ctx, o); err != nil {
			w.failed = append(w.failed, fmt.Errorf("%s: %w", cmp.Or(o.Cluster, t.Name), err))
			dead[o.Cluster] = kube.IsUnreachable(err)
		}
	}
	return w.all, errors.Join(w.failed...)
}

// switching is a run of SetSuspended, with its results.
type switching struct {
	target    *Target
	journal   *handover.Journal
	systems   map[string]*flux.System
	suspended bool
	all       []Switched
	failed    []error
}

// restorable is the error of a hand-over that is under way.
func (w *switching) restorable() error {
	return handover.Restorable("management cluster "+w.target.Name, w.journal)
}

// one switches one object. A Kustomization is suspended before the objects that it has applied, so that it makes no others, and resumed
// after them, so that it deletes none that is still suspended: Flux would forget such an object, with all that it has made.
func (w *switching) one(ctx context.Context, o FluxObject) error {
	key := kube.Key{Namespace: o.Namespace, Name: o.Name}
	ref, err := flux.RefTo(o.Kind, key)
	if err != nil {
		return err
	}
	system := w.systems[o.Cluster]
	itself := func() error {
		done, err := system.SetSuspended(ctx, []kube.Ref{ref}, w.suspended)
		for i := range done {
			done[i].InGit = done[i].InGit || o.InGit
		}
		w.tell(o.Cluster, done)
		return err
	}
	switch {
	case !o.Below:
		return itself()
	case w.suspended:
		if err := itself(); err != nil {
			return err
		}
		return w.below(ctx, system, key)
	}
	if err := w.below(ctx, system, key); err != nil {
		return err
	}
	return itself()
}

// below switches the objects that a Kustomization has applied on the management cluster, except for those of a cluster that is handed over.
func (w *switching) below(ctx context.Context, system *flux.System, top kube.Key) error {
	busy := false
	done, err := system.SetSuspendedBelow(ctx, top, w.suspended, func(r kube.Ref) bool {
		is := handedOver(w.journal, FluxObject{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name})
		busy = busy || is
		return is
	})
	w.tell("", done)
	if busy && err == nil {
		return w.restorable()
	}
	return err
}

func (w *switching) tell(cluster string, done []flux.Switched) {
	for _, d := range done {
		w.all = append(w.all, Switched{
			ManagementCluster: w.target.Name, Cluster: cluster, Kind: d.Kind, Namespace: d.Namespace, Name: d.Name, Changed: d.Changed,
			Absent: d.Absent, InGit: d.InGit, Below: d.Below,
		})
	}
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
