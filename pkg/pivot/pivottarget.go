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

// handedTarget has the kubeconfig of the cluster that takes over. fleetctl keeps it from before the hand-over until it has recorded that
// cluster as the management cluster on this machine, because the hand-over also moves the Secret with the kubeconfig.
type handedTarget struct {
	Name       string `json:"name"`
	Kubeconfig []byte `json:"kubeconfig"`
	// UID of the cluster: another kubeconfig may lead to it, too.
	UID string `json:"uid,omitempty"`
}

// targetFile is the file of handedTarget on this machine. targetSecret is its Secret at the source, for all other machines.
const targetFile = "handover-target.json"

var targetSecret = kube.Key{Namespace: handover.JournalKey.Namespace, Name: "fleetctl-handover-target"}

// answers returns an error if the API server of the target does not answer. gone is what to do if it is gone.
func answers(ctx context.Context, name string, client *kube.Client, gone string) error {
	_, err := client.ServerVersion(ctx)
	return unreached("reach the API server of "+name, name, err, gone)
}

// unreached returns the error about a request to a target that failed before the target was looked at. gone is what to do if the target is
// gone. A target that answers is not gone, and its own hint says what to do.
func unreached(op, name string, err error, gone string) error {
	const reach = "this machine must be able to reach it"
	hint := reach + gone
	switch {
	case apierrors.IsUnauthorized(err):
		hint = "its credential may have expired: give a new kubeconfig of " + name + " with `fleetctl pivot --to-kubeconfig FILE`; " +
			"if a bootstrap has begun this, run that again afterwards"
	case kube.Answered(err):
		hint = cmp.Or(diag.Hint(err), reach)
	}
	return diag.Wrap(op, err, hint)
}

// mayManage returns an error if the target cannot be a management cluster. It comes before all other requests to the target, because the
// API server of an in-memory cluster serves only a few API groups.
func mayManage(ctx context.Context, name string, client *kube.Client) error {
	groups, err := client.APIGroups(ctx)
	if err != nil {
		return unreached("find out whether "+name+" can be a management cluster", name, err, "")
	}
	lacking := slices.DeleteFunc([]string{"admissionregistration.k8s.io", "apiextensions.k8s.io"}, func(needed string) bool {
		return slices.Contains(groups, needed)
	})
	if len(lacking) == 0 {
		return nil
	}
	return diag.Errorf("name a cluster with real machines: a cluster of the flavour in-memory only simulates an API server",
		"%s cannot be a management cluster: its API server does not have %s", name, strings.Join(lacking, " and "))
}

func (p *Move) keepTarget(ctx context.Context, source *kube.Client, target *handedTarget) error {
	content, err := json.Marshal(target)
	if err != nil {
		return err
	}
	if err := p.session.Cluster.Write(targetFile, content); err != nil {
		return diag.Wrap("keep the kubeconfig of "+target.Name, err, "")
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
	return diag.Wrap("keep the kubeconfig of "+target.Name+" at "+p.session.Mgmt.Name, err, "")
}

// keptTarget returns the target that an earlier run has kept, on this machine or at the source. It returns nil if there is none.
func (p *Move) keptTarget(ctx context.Context, source *kube.Client) (*handedTarget, error) {
	kept, atSource, err := p.readTarget(ctx, source)
	if err != nil || !atSource {
		return kept, err
	}
	if kept == nil {
		return nil, diag.Errorf("give the kubeconfig of the target: --to-kubeconfig FILE",
			"the Secret %s at %s, which has the kubeconfig of the target, is damaged", targetSecret, p.session.Mgmt.Name)
	}
	// A kubeconfig may run programs and read files of this machine, and every writer of Secrets at the source can write this one.
	if reach, err := kube.ReachOf(kept.Kubeconfig); err != nil || reach.Text() != "" {
		return nil, diag.Errorf("give the kubeconfig of "+kept.Name+": --to-kubeconfig FILE",
			"fleetctl does not use the kubeconfig in the Secret %s at %s: %s", targetSecret, p.session.Mgmt.Name,
			cmp.Or(reach.Text(), "it is not a kubeconfig"))
	}
	return kept, nil
}

// readTarget is keptTarget for a run that does not connect with the kept kubeconfig. atSource tells whether the target is kept there and
// not on this machine. It is nil if it is damaged there: then nobody can tell which cluster it was.
func (p *Move) readTarget(ctx context.Context, source *kube.Client) (kept *handedTarget, atSource bool, err error) {
	if kept, err := readKept(p.session.Cluster); kept != nil || err != nil || p.Gone {
		return kept, false, err
	}
	raw, err := source.SecretValue(ctx, targetSecret, "target")
	if kube.IsAbsent(err) {
		return nil, false, nil
	}
	return decodeKept(raw), err == nil, err
}

// readKept returns the target that an earlier run has kept on this machine. It returns nil if there is none, or if the file is damaged: the
// source has the same, and the user can give a kubeconfig.
func readKept(cluster state.Cluster) (*handedTarget, error) {
	raw, err := os.ReadFile(cluster.Path(targetFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, diag.Wrap("read the kept kubeconfig of the target", err, "")
	}
	return decodeKept(raw), nil
}

// decodeKept returns nil for what is not a whole handedTarget.
func decodeKept(raw []byte) *handedTarget {
	kept := &handedTarget{}
	if err := json.Unmarshal(raw, kept); err != nil || kept.Name == "" || len(kept.Kubeconfig) == 0 {
		return nil
	}
	return kept
}

func removeKept(cluster state.Cluster) error {
	err := os.Remove(cluster.Path(targetFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return diag.Wrap("remove the kept kubeconfig of the target", err, "")
	}
	return nil
}

// forgetTarget removes the kept target after an abort. Until then, the same abort goes on: see forgetBegun.
func (p *Move) forgetTarget(ctx context.Context, source *kube.Client) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: targetSecret.Namespace, Name: targetSecret.Name}}
	err := kube.Retry(ctx, func(ctx context.Context) error { return source.WithWatch.Delete(ctx, secret) })
	if err != nil && !kube.IsAbsent(err) {
		return fmt.Errorf("delete the Secret %s: %w", targetSecret, err)
	}
	return removeKept(p.session.Cluster)
}

// Look finds out whether a hand-over is under way. It asks the source, or, if the source is gone, the target that an earlier run has kept.
// Look changes nothing, except that it starts a source that was stopped in the middle of a hand-over.
func (p *Move) Look(ctx context.Context) error {
	if p.session.HostErr != nil {
		return p.session.HostErr
	}
	kept, err := readKept(p.session.Cluster)
	if err != nil {
		return err
	}
	if len(p.toKubeconfig) > 0 { // a run on another machine may have begun the hand-over
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
		return nil // no hand-over has begun
	}
	if journal != nil && (journal.Fleet != p.session.Identity() || journal.Source.Name != p.session.Mgmt.Name) {
		return otherFleets(kept.Name, journal, p.session.Mgmt.Name)
	}
	if journal == nil || journal.Role != handover.RoleTarget || !journal.Whole() || !journal.Phase.Committed() {
		hint := "continue or undo the hand-over on the machine of the management cluster; if that is gone for good: `fleetctl pivot --abort " +
			"--source-is-gone`"
		if len(p.toKubeconfig) > 0 {
			hint += " with --to-kubeconfig, too"
		}
		return diag.Errorf(hint,
			"this machine does not find the management cluster %s, and %s has not taken over from it", p.session.Mgmt.Name, kept.Name)
	}
	p.Under, p.Gone, p.init.GoesOn = journal, true, true
	p.init.Client.Tell(client) // without the source, the steps of init ask the target
	return p.sameTarget(journal)
}

// otherFleets is the error about a target that takes over from a management cluster other than that of the command.
func otherFleets(target string, j *handover.Journal, name string) error {
	return diag.Errorf("run the command in the fleet repo of that hand-over, and name the management cluster with --management",
		"%s is in the middle of a hand-over from %s, and not from %s of this fleet", target, j.Source.Name, name)
}

// sameTarget returns an error if the user names another target than that of the hand-over that is under way.
func (p *Move) sameTarget(j *handover.Journal) error {
	if p.to == "" || len(p.toKubeconfig) > 0 || management.SameCluster(p.to, j.Target.Name) {
		return nil
	}
	return diag.Usage("name that cluster, or undo it first: `fleetctl pivot --abort`", "%s is being handed over to %s",
		p.session.Mgmt.Name, j.Target.Name)
}

// checkSource returns an error if the target could never read the fleet repo: fleetctl serves a fleet repo without a remote only to the
// source's host.
func (p *Move) checkSource() error {
	if p.session.Fleet.Spec.Git.Scheme() != v1alpha1.GitLocal || !p.Gone && !p.session.Traits().Processes {
		return nil
	}
	return diag.Usage("give the fleet repo a remote (spec.git.url in fleet.yaml)",
		"%s cannot take over: fleetctl serves a fleet repo without a remote only to the management cluster %s",
		cmp.Or(p.to, "the target"), p.session.Mgmt.Name)
}
