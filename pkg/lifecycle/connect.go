package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownership"
)

// connectedFile is the way to a management cluster that another machine made.
const connectedFile = "connected.kubeconfig"

// ConnectOptions of Connect.
type ConnectOptions struct {
	// Dir is the folder of the fleet repo, Cluster the management cluster; empty: the only one.
	Dir, Cluster string
	// Kubeconfig is a file with the way there, Context one of its contexts; empty: the current one. Without both it is, after a pivot, what this
	// machine has; else the parent is asked.
	Kubeconfig, Context string
	// MergeInto is the user's kubeconfig that gets a context for it; empty: none does.
	MergeInto string
}

// ConnectResult is what this machine knows now.
type ConnectResult struct {
	FormatVersion string   `json:"formatVersion"`
	Cluster       string   `json:"cluster"`
	Fleet         string   `json:"fleet"`
	Server        string   `json:"server"`
	MadeBy        string   `json:"madeBy,omitempty"`
	Clusters      []string `json:"clusters"`
	Keys          int      `json:"keys"`
	Kubeconfig    string   `json:"kubeconfig"`
	Next          []string `json:"next"`
}

// Connect gives this machine the way to a management cluster that another one made, or that has taken over here by a pivot. It looks whether that belongs
// to the fleet and changes nothing there. From then on each command works with it as where it was made, but for its host.
func Connect(ctx context.Context, deps management.Deps, o ConnectOptions) (*ConnectResult, error) {
	s, err := readSession(ctx, deps, InitOptions{Dir: o.Dir, Cluster: o.Cluster, MergeKubeconfig: o.MergeInto})
	if err != nil {
		return nil, err
	}
	defer s.close()
	if s.newFleet {
		return nil, diag.Errorf("run it in a clone of the fleet repo", "there is no fleet in %s", s.opts.Dir)
	}
	if s.stranger != nil {
		return nil, s.stranger
	}
	unlock, err := s.cluster.Lock("fleetctl connect")
	if err != nil {
		return nil, err
	}
	defer unlock()
	kubeconfig, err := s.wayThere(ctx, o)
	if err != nil {
		return nil, err
	}
	client, err := kube.New(kubeconfig, kube.Options{})
	if err != nil {
		return nil, err
	}
	step := s.deps.Report.Start("look whether it is this fleet's")
	result, err := s.lookThere(ctx, client)
	if err == nil {
		err = s.notHere(ctx, client)
	}
	if err != nil {
		step.Fail(err)
		return nil, err
	}
	step.Done()
	return result, s.rememberConnected(ctx, client, s.renewed(ctx, client, kubeconfig), result)
}

// wayThere is the kubeconfig to go by.
func (s *session) wayThere(ctx context.Context, o ConnectOptions) ([]byte, error) {
	if o.Kubeconfig != "" || o.Context != "" {
		return hosts.Kubeconfig(o.Kubeconfig, o.Context)
	}
	record, err := s.cluster.Load()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	switch {
	case record != nil && (record.PivotedTo != "" || record.Connected):
		content, err := os.ReadFile(s.cluster.Path(management.KubeconfigFile))
		return content, diag.Wrap("read the kubeconfig of "+s.mgmt.Name, err, "give it: --kubeconfig FILE")
	case s.mgmt.Parent != "":
		if alone, err := s.standsAlone(); err != nil || alone {
			if err != nil {
				return nil, err
			}
			return s.keptWay()
		}
		if err := s.askParent(ctx); err != nil {
			return nil, err
		}
		return hosts.Kubeconfig(s.cluster.Path(hosts.WorkloadKubeconfigFile), s.mgmt.Name)
	}
	return nil, diag.Usage("give its kubeconfig: --kubeconfig FILE; where it was made, `fleetctl kubeconfig` prints it",
		"nothing on this machine tells where the management cluster %s is", s.mgmt.Name)
}

// lookThere refuses a cluster that is not this management cluster, or not any more.
func (s *session) lookThere(ctx context.Context, client *kube.Client) (*ConnectResult, error) {
	claim, err := ownership.ReadClaim(ctx, client)
	if err != nil {
		return nil, err
	}
	if claim == nil {
		return nil, diag.Errorf("a cluster becomes one by `fleetctl init`, with host.existing in fleet.yaml, or by `fleetctl pivot --to-kubeconfig FILE`",
			"the cluster at %s is no management cluster: it belongs to no fleet", client.Host())
	}
	if err := s.checkClaim(claim); err != nil {
		return nil, err
	}
	journal, err := handover.ReadJournal(ctx, client)
	if err != nil {
		return nil, err
	}
	if journal != nil && journal.Role == handover.RoleSource && journal.Whole() && journal.Phase.Committed() {
		return nil, diag.Errorf("connect to that one", "the cluster at %s has handed its work over to %s", client.Host(), journal.Target.Name)
	}
	manager, err := capi.New(client)
	if err != nil {
		return nil, err
	}
	clusters, err := manager.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	result := &ConnectResult{
		FormatVersion: "1", Cluster: s.mgmt.Name, Fleet: s.fleet.Metadata.Name, Server: client.Host(), MadeBy: claim.By, Clusters: management.FullNames(clusters),
		Next: []string{"fleetctl status                # the clusters, and what is wrong"},
	}
	return result, nil
}

// notHere refuses where this machine has a host for the management cluster: it would lose sight of it.
func (s *session) notHere(ctx context.Context, client *kube.Client) error {
	record, err := s.cluster.Load()
	if errors.Is(err, fs.ErrNotExist) || err == nil && record.Connected {
		return nil
	}
	if err != nil {
		return err
	}
	alone, err := s.standsAlone()
	if err != nil || alone {
		return err
	}
	if record.PivotedTo != "" && hosts.TraitsOf(v1alpha1.Host{Type: v1alpha1.HostType(record.HostType)}, "").Elsewhere {
		return nil // it is no host of this machine's
	}
	h, err := hosts.Remembered(ctx, record, s.cluster)
	if err != nil {
		return err
	}
	st, err := h.State(ctx)
	if err != nil || st == host.StateAbsent {
		return err
	}
	if st == host.StateRunning {
		here, err := management.Reach(ctx, h)
		if err != nil {
			return err
		}
		mine, err := handover.ClusterUID(ctx, here)
		if err != nil {
			return err
		}
		if there, err := handover.ClusterUID(ctx, client); err != nil || mine == there {
			return errors.Join(err, diag.Errorf("nothing is to be done: `fleetctl status` shows it", "the management cluster %s is on this machine", s.mgmt.Name))
		}
	}
	return diag.Errorf("`fleetctl host delete` ends it, once it has nothing left to do", "this machine has a host for the management cluster %s (%s)", s.mgmt.Name, st)
}

// rememberConnected keeps the way there, with the keys that the management cluster decrypts the fleet's secrets with.
func (s *session) rememberConnected(ctx context.Context, client *kube.Client, kubeconfig []byte, result *ConnectResult) error {
	keys, err := fleetsecrets.ClusterKeys(ctx, client)
	if err != nil {
		return err
	}
	if err := fleetsecrets.KeepKeys(ctx, s.deps, s.stateFleet(), keys); err != nil {
		return err
	}
	result.Keys, result.Kubeconfig = len(keys), s.cluster.Path(management.KubeconfigFile)
	if err := kube.WriteKubeconfig(result.Kubeconfig, kubeconfig); err != nil {
		return err
	}
	way := s.cluster.Path(connectedFile) // a pivot from here writes the target's over the other
	if err := kube.WriteKubeconfig(way, kubeconfig); err != nil {
		return err
	}
	here := s.record()
	here.Connected, here.HostType, here.KubeconfigSource, here.Context = true, string(v1alpha1.HostExisting), way, kube.CurrentContext(kubeconfig)
	if err := s.cluster.Save(here); err != nil {
		return err
	}
	if s.opts.MergeKubeconfig == "" {
		return nil
	}
	return kube.MergeKubeconfig(ctx, s.opts.MergeKubeconfig, management.ContextName(s.mgmt.Name), kubeconfig)
}

// Disconnect forgets the way to a management cluster that another machine made. Nothing there is changed.
func Disconnect(t *management.Target) error {
	if t.Record == nil || !t.Record.Connected {
		return diag.Errorf("`fleetctl teardown` removes one that this machine has made", "this machine has no connection to a management cluster %s", t.Name)
	}
	unlock, err := t.Cluster.Lock("fleetctl connect --forget")
	if err != nil {
		return err
	}
	defer unlock()
	if err := t.Cluster.Remove(); err != nil {
		return fmt.Errorf("forget the management cluster %s: %w", t.Name, err)
	}
	return nil
}
