package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
)

// StandsAlone tells whether the fleet repo says that the management cluster manages the cluster that it runs on. Its parent, which made it,
// no longer has its objects, and may be gone.
func (s *Session) StandsAlone() (bool, error) {
	if s.NewFleet || s.Mgmt.Parent == "" {
		return false, nil
	}
	repo, err := fleetrepo.Open(s.Opts.Dir)
	if err != nil {
		return false, err
	}
	return repo.StandsAlone(s.Mgmt.Name)
}

// askAbove gets the kubeconfig of a management cluster that has a parent: from the parent, or, if the management cluster stands alone, the
// kubeconfig that an earlier run has kept.
func (s *Session) askAbove(ctx context.Context) error {
	alone, err := s.StandsAlone()
	if err != nil {
		return err
	}
	if !alone {
		return s.AskParent(ctx)
	}
	_, err = os.Stat(s.Cluster.Path(hosts.WorkloadKubeconfigFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s.noWay()
	}
	return diag.Wrap("look for the way to "+s.Mgmt.Name, err, "")
}

// noWay is the error about a management cluster that stands alone and whose kubeconfig this machine does not have.
func (s *Session) noWay() error {
	return diag.NotReady(fmt.Sprintf(
		"`fleetctl connect --management %s --kubeconfig FILE`; the machine that made it prints that with `fleetctl kubeconfig --management %s`",
		s.Mgmt.Name, s.Mgmt.Name),
		"the management cluster %s stands alone: %s, which made it, has nothing of it any more, and nothing on this machine tells where it is",
		s.Mgmt.Name, s.Mgmt.Parent)
}

// KeptWay returns the kubeconfig of a management cluster that stands alone, as this machine has kept it.
func (s *Session) KeptWay() ([]byte, error) {
	content, err := hosts.Kubeconfig(s.Cluster.Path(hosts.WorkloadKubeconfigFile), s.Mgmt.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.noWay()
	}
	return content, err
}

// Renewed returns the present kubeconfig of Cluster API for a management cluster that manages the cluster that it runs on. It returns the
// given kubeconfig if Cluster API has none that leads to the same cluster.
func (s *Session) Renewed(ctx context.Context, client *kube.Client, kubeconfig []byte) []byte {
	alone, err := s.StandsAlone()
	if err != nil || !alone {
		return kubeconfig
	}
	ctx, cancel := context.WithTimeout(ctx, LookTimeout)
	defer cancel()
	manager, err := capi.New(client)
	if err != nil {
		return kubeconfig
	}
	own, err := management.FindCluster(ctx, manager, s.Mgmt.Name)
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

// RefuseChild refuses to hand all the work of a management cluster to its own child. The child has a folder of its own in the fleet repo,
// and its Flux would follow the parent's folder.
func (s *Session) RefuseChild(to string) error {
	name := to[strings.LastIndex(to, "/")+1:]
	for i := range s.Fleet.Spec.ManagementClusters {
		if m := &s.Fleet.Spec.ManagementClusters[i]; m.Name == name && m.Parent == s.Mgmt.Name {
			return diag.Usage("`fleetctl bootstrap --management "+name+" --stand-alone` hands it what is its own",
				"%s is a management cluster with a folder of its own, %s: it cannot take over all that %s has, whose folder its Flux would follow",
				name, m.Layout().Owned(), s.Mgmt.Name)
		}
	}
	return nil
}
