package pivot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// handedTarget is the kubeconfig of the cluster that takes over. It is kept from before the hand-over until this machine remembers that
// cluster as its management cluster, because the hand-over also moves the Secret with the kubeconfig.
type handedTarget struct {
	Name       string `json:"name"`
	Kubeconfig []byte `json:"kubeconfig"`
}

// targetFile is the file of handedTarget on this machine. targetSecret is its Secret at the source, for all other machines.
const targetFile = "handover-target.json"

var targetSecret = kube.Key{Namespace: handover.JournalKey.Namespace, Name: "fleetctl-handover-target"}

// mayManage refuses a target that cannot be a management cluster, before anything asks the target for more. An in-memory cluster simulates
// a few API groups, and runs nothing.
func mayManage(ctx context.Context, name string, client *kube.Client) error {
	groups, err := client.APIGroups(ctx)
	if err != nil {
		return diag.Wrap("look what "+name+" is", err, "this machine must be able to reach it")
	}
	lacking := slices.DeleteFunc([]string{"admissionregistration.k8s.io", "apiextensions.k8s.io"}, func(needed string) bool {
		return slices.Contains(groups, needed)
	})
	if len(lacking) == 0 {
		return nil
	}
	return diag.Errorf("name a cluster with machines of its own: one of the flavour in-memory only simulates an API server",
		"%s cannot be a management cluster: its API server does not have %s", name, strings.Join(lacking, " and "))
}

func (p *Move) keepTarget(ctx context.Context, source *kube.Client, target *handedTarget) error {
	content, err := json.Marshal(target)
	if err != nil {
		return err
	}
	if err := p.session.Cluster.Write(targetFile, content); err != nil {
		return diag.Wrap("keep the way to "+target.Name, err, "")
	}
	if p.Gone {
		return nil
	}
	wanted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: targetSecret.Namespace, Name: targetSecret.Name, Labels: map[string]string{"app.kubernetes.io/managed-by": "fleetctl"},
		},
		Data: map[string][]byte{"target": content},
	}
	err = kube.Retry(ctx, func(ctx context.Context) error {
		err := source.Create(ctx, wanted.DeepCopy())
		if apierrors.IsAlreadyExists(err) {
			return source.Update(ctx, wanted.DeepCopy())
		}
		return err
	})
	return diag.Wrap("keep the way to "+target.Name+" at "+p.session.Mgmt.Name, err, "")
}

// keptTarget returns the target that an earlier run has kept, here or at the source. It returns nil if there is none.
func (p *Move) keptTarget(ctx context.Context, source *kube.Client) (*handedTarget, error) {
	if kept, err := readKept(p.session.Cluster); kept != nil || err != nil {
		return kept, err
	}
	if p.Gone {
		return nil, nil
	}
	raw, err := source.SecretValue(ctx, targetSecret, "target")
	if kube.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	kept, err := decodeKept(raw)
	if err != nil {
		return nil, err
	}
	// Whoever may write Secrets at the source could otherwise run commands here, as the user of fleetctl.
	if reach, err := kube.ReachOf(kept.Kubeconfig); err != nil || reach.Text() != "" {
		return nil, diag.Errorf("give the way to "+kept.Name+" yourself: --to-kubeconfig FILE",
			"the kubeconfig in the Secret %s at %s is not used: %s", targetSecret, p.session.Mgmt.Name, cmp.Or(reach.Text(), "it is none"))
	}
	return kept, nil
}

func readKept(cluster state.Cluster) (*handedTarget, error) {
	raw, err := os.ReadFile(cluster.Path(targetFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, diag.Wrap("read the way to the target", err, "")
	}
	return decodeKept(raw)
}

func decodeKept(raw []byte) (*handedTarget, error) {
	kept := &handedTarget{}
	if err := json.Unmarshal(raw, kept); err != nil {
		return nil, fmt.Errorf("read the way to the target: %w", err)
	}
	return kept, nil
}

func removeKept(cluster state.Cluster) error {
	err := os.Remove(cluster.Path(targetFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return diag.Wrap("forget the way to the target", err, "")
	}
	return nil
}

// forgetTarget removes the kept target after an abort.
func (p *Move) forgetTarget(ctx context.Context) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: targetSecret.Namespace, Name: targetSecret.Name}}
	err := kube.Retry(ctx, func(ctx context.Context) error { return p.source.WithWatch.Delete(ctx, secret) })
	if err != nil && !kube.IsAbsent(err) {
		return fmt.Errorf("delete the Secret %s: %w", targetSecret, err)
	}
	return removeKept(p.session.Cluster)
}

// Look finds out whether a hand-over is under way, from the source, or, if the source is gone, from the target that an earlier run has
// kept. It changes nothing, but for starting a source that was stopped in the middle of a hand-over.
func (p *Move) Look(ctx context.Context) error {
	if p.session.HostErr != nil {
		return p.session.HostErr
	}
	kept, err := readKept(p.session.Cluster)
	if err != nil {
		return err
	}
	if len(p.toKubeconfig) > 0 { // another machine's run may have begun, of which this one knows nothing
		kept = &handedTarget{Name: p.to, Kubeconfig: p.toKubeconfig}
	}
	st, err := p.session.Host.State(ctx)
	if err == nil && st == host.StateStopped && kept != nil {
		st, err = p.session.Host.Start(ctx, nil)
	}
	if err != nil {
		return err
	}
	if st == host.StateRunning {
		return p.lookAtSource(ctx)
	}
	if st != host.StateAbsent || kept == nil {
		return nil
	}
	return p.lookAtTarget(ctx, kept)
}

func (p *Move) lookAtSource(ctx context.Context) error {
	client, err := management.Reach(ctx, p.session.Host)
	if err != nil {
		return err
	}
	there, err := standing.Find(ctx, p.session)
	if err != nil {
		return err
	}
	if there != nil {
		if err := p.session.CheckClaim(there.Claim); err != nil {
			return err
		}
	}
	journal, err := handover.ReadJournal(ctx, client)
	if err != nil {
		return err
	}
	p.source = client
	if journal.Active() && !journal.Whole() && !journal.Detach {
		return handover.InTheMiddle(p.session.Mgmt.Name, journal)
	}
	if journal != nil && journal.Role == handover.RoleSource && journal.Whole() {
		p.Under, p.init.GoesOn = journal, true
		return p.sameTarget(journal)
	}
	return nil
}

// lookAtTarget is Look without a source: the target alone can finish a hand-over that is committed.
func (p *Move) lookAtTarget(ctx context.Context, kept *handedTarget) error {
	client, err := kube.New(kept.Kubeconfig, kube.Options{})
	if err != nil {
		return err
	}
	journal, err := handover.ReadJournal(ctx, client)
	if err != nil {
		return err
	}
	if journal == nil && len(p.toKubeconfig) > 0 {
		return nil // nothing has begun there
	}
	if journal != nil && (journal.Fleet != p.session.Identity() || journal.Source.Name != p.session.Mgmt.Name) {
		return otherFleets(kept.Name, journal, p.session.Mgmt.Name)
	}
	if journal == nil || journal.Role != handover.RoleTarget || !journal.Whole() || !journal.Phase.Committed() {
		hint := "go on, or undo it, on the machine that the management cluster is on; if that is gone for good: `fleetctl pivot --abort " +
			"--source-is-gone`"
		if len(p.toKubeconfig) > 0 {
			hint += " with --to-kubeconfig, too"
		}
		return diag.Errorf(hint, "the management cluster %s is not there, and %s has not taken over from it", p.session.Mgmt.Name, kept.Name)
	}
	p.Under, p.Gone, p.init.GoesOn = journal, true, true
	p.init.Client.Tell(client) // all that there is to ask
	return p.sameTarget(journal)
}

// otherFleets is the error about a target that takes over from another management cluster than the one of the command.
func otherFleets(target string, j *handover.Journal, name string) error {
	return diag.Errorf("work with it from its own fleet repo, and name its management cluster with --management",
		"%s is in a hand-over from %s, which is another management cluster than %s of this fleet", target, j.Source.Name, name)
}

// sameTarget refuses a target that differs from the target of the hand-over that is under way.
func (p *Move) sameTarget(j *handover.Journal) error {
	if p.to == "" || len(p.toKubeconfig) > 0 || management.SameCluster(p.to, j.Target.Name) {
		return nil
	}
	return diag.Usage("name that cluster, or undo it first: `fleetctl pivot --abort`", "%s is being handed over to %s",
		p.session.Mgmt.Name, j.Target.Name)
}

// checkSource refuses a fleet repo that the target could never read: a fleet repo without a remote is served to the source's host alone.
func (p *Move) checkSource() error {
	if p.session.Fleet.Spec.Git.Scheme() != v1alpha1.GitLocal || !p.Gone && !p.session.Traits().Processes {
		return nil
	}
	return diag.Usage("give the fleet repo a remote (spec.git.url in fleet.yaml)",
		"%s cannot take over: a fleet repo without a remote is served to the management cluster %s only",
		cmp.Or(p.to, "the target"), p.session.Mgmt.Name)
}
