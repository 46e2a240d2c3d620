// Package connect gives this machine access to a management cluster that another machine has made, and forgets it again.
package connect

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
	"github.com/fleetctl/fleetctl/pkg/session"
)

// connectedFile is the way to a management cluster that another machine made.
const connectedFile = "connected.kubeconfig"

// Options of Connect.
type Options struct {
	// Dir is the folder of the fleet repo, Cluster the management cluster; empty: the only one.
	Dir, Cluster string
	// Kubeconfig is a file that leads to the management cluster. Context is one of its contexts; empty: the current context. Without both, the
	// access comes from this machine's files after a pivot, else from the parent.
	Kubeconfig, Context string
	// MergeInto is the user's kubeconfig that gets a context for it; empty: none does.
	MergeInto string
}

// Result is what this machine knows now.
type Result struct {
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

// Connect gives this machine access to a management cluster that another machine made, or that has taken over on this machine by a pivot.
// It checks that the management cluster belongs to the fleet, and changes nothing on it. Afterwards every command works as on the machine
// that made the management cluster, except the commands for the host.
func Connect(ctx context.Context, deps management.Deps, o Options) (*Result, error) {
	s, err := session.Read(ctx, deps, session.Options{Dir: o.Dir, Cluster: o.Cluster, MergeKubeconfig: o.MergeInto})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if s.NewFleet {
		return nil, diag.Errorf("run it in a clone of the fleet repo", "there is no fleet in %s", s.Opts.Dir)
	}
	if s.Stranger != nil {
		return nil, s.Stranger
	}
	unlock, err := s.Cluster.Lock("fleetctl connect")
	if err != nil {
		return nil, err
	}
	defer unlock()
	kubeconfig, err := wayThere(ctx, s, o)
	if err != nil {
		return nil, err
	}
	client, err := kube.New(kubeconfig, kube.Options{})
	if err != nil {
		return nil, err
	}
	step := s.Deps.Report.Start("look whether it is this fleet's")
	result, err := lookThere(ctx, s, client)
	if err == nil {
		err = notHere(ctx, s, client)
	}
	if err != nil {
		step.Fail(err)
		return nil, unanswered(s.Mgmt.Name, client, err)
	}
	step.Done()
	return result, rememberConnected(ctx, s, client, s.Renewed(ctx, client, kubeconfig), result)
}

// unanswered adds to an error what to do about a management cluster that does not answer; it returns another error as it is.
func unanswered(name string, client *kube.Client, err error) error {
	if diag.Hint(err) != "" || !client.Unanswered(err) {
		return err
	}
	return diag.Wrap("reach the management cluster "+name+" at "+client.Host(), err, "see whether it runs, and whether this machine reaches "+
		"that address: --kubeconfig takes a kubeconfig with another one. If it is gone for good: `"+
		diag.ShellCommand("fleetctl", "restore", "--management", name)+"`")
}

// wayThere is the kubeconfig to go by.
func wayThere(ctx context.Context, s *session.Session, o Options) ([]byte, error) {
	if o.Kubeconfig != "" || o.Context != "" {
		return hosts.Kubeconfig(o.Kubeconfig, o.Context)
	}
	record, err := s.Cluster.Load()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	switch {
	case record != nil && (record.PivotedTo != "" || record.Connected):
		content, err := os.ReadFile(s.Cluster.Path(management.KubeconfigFile))
		return content, diag.Wrap("read the kubeconfig of "+s.Mgmt.Name, err, "give it: --kubeconfig FILE")
	case s.Mgmt.Parent != "":
		if alone, err := s.StandsAlone(); err != nil || alone {
			if err != nil {
				return nil, err
			}
			return s.KeptWay()
		}
		if err := s.AskParent(ctx); err != nil {
			return nil, err
		}
		return hosts.Kubeconfig(s.Cluster.Path(hosts.WorkloadKubeconfigFile), s.Mgmt.Name)
	}
	hint := "give its kubeconfig: --kubeconfig FILE; on the machine that made it, `fleetctl kubeconfig` prints it"
	kept := s.Cluster.Path(management.KubeconfigFile)
	if record == nil && isFile(kept) { // the record was lost
		hint += "; one that may lead there is left of an earlier command: --kubeconfig " + diag.ShellWord(kept)
	}
	return nil, diag.Usage(hint,
		"nothing on this machine tells where the management cluster %s is", s.Mgmt.Name)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// lookThere refuses a cluster that is not this management cluster, or not any more.
func lookThere(ctx context.Context, s *session.Session, client *kube.Client) (*Result, error) {
	claim, err := ownership.ReadClaim(ctx, client)
	if err != nil {
		return nil, err
	}
	if claim == nil {
		return nil, diag.Errorf(
			"a cluster becomes one by `fleetctl init`, with host.existing in fleet.yaml, or by `fleetctl pivot --to-kubeconfig FILE`",
			"the cluster at %s is no management cluster: it belongs to no fleet", client.Host())
	}
	if other := s.OtherManagement(claim); other != "" {
		return nil, diag.Errorf("give the kubeconfig of "+s.Mgmt.Name+"; this one is for `"+
			diag.ShellCommand("fleetctl", "connect", "--management", other, "--kubeconfig")+" FILE`",
			"the cluster at %s is not the management cluster %s, but %s of the same fleet", client.Host(), s.Mgmt.Name, other)
	}
	switch err := s.CheckClaim(claim); {
	case errors.Is(err, ownership.ErrOtherFleet): // another name, which init may need, is no help here
		return nil, diag.Wrap("", err, "give the kubeconfig of "+s.Mgmt.Name+" of this fleet; or run `fleetctl connect` in a clone of the repo of "+
			"the other fleet")
	case err != nil:
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
	result := &Result{
		FormatVersion: "1", Cluster: s.Mgmt.Name, Fleet: s.Fleet.Metadata.Name, Server: client.Host(), MadeBy: claim.By,
		Clusters: management.FullNames(clusters),
		Next:     []string{"fleetctl status                # the clusters, and what is wrong"},
	}
	return result, nil
}

// notHere refuses where this machine has a host for the management cluster: it would lose sight of it.
func notHere(ctx context.Context, s *session.Session, client *kube.Client) error {
	record, err := s.Cluster.Load()
	if errors.Is(err, fs.ErrNotExist) || err == nil && record.Connected {
		return nil
	}
	if err != nil {
		return err
	}
	alone, err := s.StandsAlone()
	if err != nil || alone {
		return err
	}
	if record.PivotedTo != "" && hosts.TraitsOf(v1alpha1.Host{Type: v1alpha1.HostType(record.HostType)}, "").Elsewhere {
		return nil // it is no host of this machine's
	}
	h, err := hosts.Remembered(ctx, record, s.Cluster)
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
			return errors.Join(err, diag.Errorf("nothing is to be done: `fleetctl status` shows it",
				"the management cluster %s is on this machine", s.Mgmt.Name))
		}
	}
	return diag.Errorf("`fleetctl host delete` ends it, once it has nothing left to do",
		"this machine has a host for the management cluster %s (%s)", s.Mgmt.Name, st)
}

// rememberConnected keeps the way there, with the keys that the management cluster decrypts the fleet's secrets with.
func rememberConnected(ctx context.Context, s *session.Session, client *kube.Client, kubeconfig []byte, result *Result) error {
	keys, err := fleetsecrets.ClusterKeys(ctx, client)
	if err != nil {
		return err
	}
	if err := fleetsecrets.KeepKeys(ctx, s.Deps, s.StateFleet(), keys); err != nil {
		return err
	}
	result.Keys, result.Kubeconfig = len(keys), s.Cluster.Path(management.KubeconfigFile)
	if err := kube.WriteKubeconfig(result.Kubeconfig, kubeconfig); err != nil {
		return err
	}
	way := s.Cluster.Path(connectedFile) // a pivot from here writes the target's over the other
	if err := kube.WriteKubeconfig(way, kubeconfig); err != nil {
		return err
	}
	here := s.Record()
	here.Connected, here.HostType, here.KubeconfigSource, here.Context = true, string(v1alpha1.HostExisting), way,
		kube.CurrentContext(kubeconfig)
	if err := s.Cluster.Save(here); err != nil {
		return err
	}
	if s.Opts.MergeKubeconfig == "" {
		return nil
	}
	return kube.MergeKubeconfig(ctx, s.Opts.MergeKubeconfig, management.ContextName(s.Mgmt.Name), kubeconfig)
}

// Disconnect forgets the way to a management cluster that another machine made, and removes the context that Connect has written to the
// user's kubeconfig. Nothing there is changed. A kubeconfig that cannot be changed is a warning: the user can remove the context, too.
func Disconnect(ctx context.Context, deps management.Deps, t *management.Target) error {
	none := diag.Errorf("`fleetctl teardown` removes one that this machine has made",
		"this machine has no connection to a management cluster %s", t.Name)
	if t.Record == nil || !t.Record.Connected {
		return none
	}
	unlock, err := t.Cluster.Lock("fleetctl connect --forget")
	if err != nil {
		return err
	}
	defer unlock()
	if err := t.Reload(); err != nil {
		return err
	}
	if t.Record == nil || !t.Record.Connected {
		return none
	}
	if into := t.Record.MergedInto; into != "" {
		if _, err := kube.RemoveFromKubeconfig(ctx, into, management.ContextName(t.Name)); err != nil {
			deps.Report.Warn(fmt.Sprintf("%s may still have the context %s: %v", into, management.ContextName(t.Name), err))
		}
	}
	if err := t.Cluster.Remove(); err != nil {
		return fmt.Errorf("forget the management cluster %s: %w", t.Name, err)
	}
	return nil
}
