package session

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
)

// AskParent gets the kubeconfig of a management cluster from its parent, for which it is a workload cluster. Cluster API renews that
// kubeconfig, so each run asks again.
func (s *Session) AskParent(ctx context.Context) error {
	name, parent := s.Mgmt.Name, s.Mgmt.Parent
	op := fmt.Sprintf("ask management cluster %s for %s", parent, name)
	above, err := management.Find(s.Deps.Store, parent, s.Opts.Dir)
	if err != nil {
		return diag.Wrap(op, err, "")
	}
	client, err := above.Client(ctx)
	if err != nil {
		return diag.Wrap(op, err, "bring "+parent+" up first: `fleetctl init --management "+parent+"`; or, if "+name+" runs already, "+
			"give this machine access to it: `fleetctl connect --management "+name+" --kubeconfig FILE`")
	}
	manager, err := capi.New(client)
	if err != nil {
		return diag.Wrap(op, err, "")
	}
	declare := fmt.Sprintf(
		"declare it with `fleetctl cluster add %s --management %s`, and wait until `fleetctl status --management %s` shows it", name, parent,
		parent)
	cluster, err := management.FindCluster(ctx, manager, name)
	if err != nil {
		return diag.Wrap(op, err, declare)
	}
	if !cluster.Available {
		return &diag.Error{
			Op: op, Err: fmt.Errorf("cluster %s is not Available yet", cluster.FullName()), Code: diag.ExitNotReady,
			Hint: fmt.Sprintf("`fleetctl status --management %s` says what it waits for", parent),
		}
	}
	kubeconfig, err := manager.WorkloadKubeconfig(ctx, cluster.Key())
	if err != nil {
		return diag.Wrap(op, err, "")
	}
	return keepWay(ctx, s.Cluster.Path(hosts.WorkloadKubeconfigFile), name, kubeconfig)
}

// keepWay writes the kubeconfig that the parent has given to a file of this machine. A damaged file is no reason to fail: it has nothing
// that the parent does not give.
func keepWay(ctx context.Context, file, name string, kubeconfig []byte) error {
	err := kube.MergeKubeconfig(ctx, file, name, kubeconfig)
	if _, damaged := hosts.Kubeconfig(file, ""); err == nil || damaged == nil {
		return err
	}
	if removed := os.Remove(file); removed != nil {
		return errors.Join(err, removed)
	}
	return kube.MergeKubeconfig(ctx, file, name, kubeconfig)
}

// reachAsConnected makes the session reach a management cluster with the kubeconfig that `fleetctl connect` has kept, whatever host
// fleet.yaml declares.
func (s *Session) reachAsConnected() {
	record, err := s.Cluster.Load()
	if err != nil || !record.Connected {
		return
	}
	here := *s.Mgmt // what fleet.yaml says stays as it is
	here.Host = v1alpha1.Host{
		Type: v1alpha1.HostExisting, Existing: &v1alpha1.ExistingHost{Kubeconfig: record.KubeconfigSource, Context: record.Context},
	}
	s.Mgmt, s.Connected = &here, true
}
