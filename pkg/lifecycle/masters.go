package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
)

// standsAlone tells whether the management cluster manages the cluster that it runs on, as the fleet repo says: its parent, which made it, has nothing of it
// any more, and may be gone.
func (s *session) standsAlone() (bool, error) {
	if s.newFleet || s.mgmt.Parent == "" {
		return false, nil
	}
	repo, err := fleetrepo.Open(s.opts.Dir)
	if err != nil {
		return false, err
	}
	return repo.StandsAlone(s.mgmt.Name)
}

// askAbove gets the way to a management cluster that has a parent: from that, or as an earlier run has kept it where nothing is to be asked there any more.
func (s *session) askAbove(ctx context.Context) error {
	alone, err := s.standsAlone()
	if err != nil {
		return err
	}
	if !alone {
		return s.askParent(ctx)
	}
	_, err = os.Stat(s.cluster.Path(hosts.WorkloadKubeconfigFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s.noWay()
	}
	return diag.Wrap("look for the way to "+s.mgmt.Name, err, "")
}

// noWay is where a management cluster stands alone and this machine has no way to it.
func (s *session) noWay() error {
	return diag.NotReady(fmt.Sprintf("`fleetctl connect --management %s --kubeconfig FILE`; the machine that made it prints that with `fleetctl kubeconfig --management %s`",
		s.mgmt.Name, s.mgmt.Name),
		"the management cluster %s stands alone: %s, which made it, has nothing of it any more, and nothing on this machine tells where it is", s.mgmt.Name, s.mgmt.Parent)
}

// keptWay is the kubeconfig of a management cluster that stands alone, as this machine has kept it.
func (s *session) keptWay() ([]byte, error) {
	content, err := hosts.Kubeconfig(s.cluster.Path(hosts.WorkloadKubeconfigFile), s.mgmt.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.noWay()
	}
	return content, err
}

// renewed is the kubeconfig that Cluster API has by now for a management cluster that manages the cluster that it runs on; where it has none that leads to
// the same cluster, the one that is given.
func (s *session) renewed(ctx context.Context, client *kube.Client, kubeconfig []byte) []byte {
	alone, err := s.standsAlone()
	if err != nil || !alone {
		return kubeconfig
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	manager, err := capi.New(client)
	if err != nil {
		return kubeconfig
	}
	own, err := management.FindCluster(ctx, manager, s.mgmt.Name)
	if err != nil {
		return kubeconfig
	}
	now, err := manager.WorkloadKubeconfig(ctx, own.Key())
	if err != nil {
		return kubeconfig
	}
	there, err := kube.New(now, kube.Options{})
	if err != nil {
		return kubeconfig
	}
	wanted, err := handover.ClusterUID(ctx, client)
	if err != nil {
		return kubeconfig
	}
	if uid, err := handover.ClusterUID(ctx, there); err != nil || uid != wanted {
		return kubeconfig
	}
	return now
}

// refuseChild refuses to hand all the work of a management cluster to one that it makes: that has a folder of its own in the fleet repo, and its Flux would
// follow the parent's.
func (s *session) refuseChild(to string) error {
	name := to[strings.LastIndex(to, "/")+1:]
	for i := range s.fleet.Spec.ManagementClusters {
		if m := &s.fleet.Spec.ManagementClusters[i]; m.Name == name && m.Parent == s.mgmt.Name {
			return diag.Usage("`fleetctl bootstrap --management "+name+" --stand-alone` hands it what is its own",
				"%s is a management cluster with a folder of its own, %s: it cannot take over all that %s has, whose folder its Flux would follow",
				name, m.Layout().Owned(), s.mgmt.Name)
		}
	}
	return nil
}

// ForgetSnapshots removes the snapshots that were taken of a management cluster which has handed all its work over and is gone: nothing of it is left that could be
// restored, and a later one of its name begins from the fleet repo. uid is its own (handover.ClusterUID): snapshots of others, and those that cannot be read with
// the keys of this machine, are kept and counted.
func ForgetSnapshots(ctx context.Context, deps management.Deps, o InitOptions, uid string) (kept int, err error) {
	s, err := readSession(ctx, deps, o)
	if err != nil {
		return 0, err
	}
	defer s.close()
	place, ids, err := s.snapshots(ctx)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	keys, err := fleetsecrets.LocalKeys(s.deps, s.stateFleet(), s.opts.Dir, s.opts.AgeKeyFile)
	if err != nil {
		return 0, err
	}
	for _, id := range ids {
		if snap, err := snapshot.Find(ctx, place, id, keys); err != nil || snap.Fleet != s.identity() || snap.UID != uid {
			kept++
			continue
		}
		if err := place.Remove(ctx, id); err != nil {
			return kept, fmt.Errorf("remove the snapshot %s of %s: %w", id, s.mgmt.Name, err)
		}
	}
	return kept, nil
}

// Permanent tells whether a management cluster is to stay when its work is done: bootstrap has not made it on this machine. One that runs although this machine
// remembers nothing of it was made by somebody else, and one on a cluster of somebody's own was not made at all.
func Permanent(ctx context.Context, deps management.Deps, dir, name string, declared v1alpha1.Host) (bool, error) {
	if hosts.TraitsOf(declared, "").Elsewhere {
		return true, nil
	}
	target, err := management.Find(deps.Store, name, dir)
	if err != nil {
		return false, err
	}
	if target.Record != nil {
		return !target.Record.Ephemeral, nil
	}
	there, err := target.Host(ctx)
	if err != nil {
		return false, err
	}
	now, err := there.State(ctx)
	if err != nil {
		return false, diag.Wrap("look whether the management cluster "+name+" is there", err, "")
	}
	return now != host.StateAbsent, nil
}
