// Package leaving is how a workload cluster leaves its management cluster: looked into and drained before it is deleted
// (Inside, Drain), detached and left alone (Detach), or removed as the fleet repo says (AwaitRemoval).
package leaving

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// DetachOptions of Detach.
type DetachOptions struct {
	Target *management.Target
	// Cluster is the workload cluster, NAME or NAMESPACE/NAME.
	Cluster string
	// KubeconfigOut is a private file for the cluster's kubeconfig; empty: one in the state folder.
	KubeconfigOut string
	// DryRun only says what would stay. Abort undoes an earlier run, as long as that run has removed no object.
	DryRun, Abort bool
	// Confirm, if not nil, is called before anything is changed. An error of Confirm ends the command.
	Confirm func(*DetachResult) error
	Timeout time.Duration
}

// DetachResult names what Detach has left without a management cluster.
type DetachResult struct {
	FormatVersion string `json:"formatVersion"`
	// Outcome is detached, planned or undone.
	Outcome           string             `json:"outcome"`
	Cluster           string             `json:"cluster"`
	ManagementCluster string             `json:"managementCluster"`
	Left              []handover.Remnant `json:"left"`
	// Kubeconfig is the file with the cluster's kubeconfig. Snapshot is a private file with all its objects as they
	// were.
	Kubeconfig string           `json:"kubeconfig,omitempty"`
	Snapshot   string           `json:"snapshot,omitempty"`
	Suspended  []string         `json:"suspended"`
	Report     *handover.Report `json:"report,omitempty"`
	Next       []string         `json:"next"`
}

// lookTime bounds a look at the management cluster after the command's own time is over.
const lookTime = 10 * time.Second

type detach struct {
	management.Deps
	opts    DetachOptions
	client  *kube.Client
	manager *capi.Manager
	key     kube.Key
	begun   *handover.Journal // of an earlier run that was interrupted; nil if this is the first run
	before  *handover.Journal // the journal before this run; nil for none
	release kube.Key          // the HelmRelease that makes the cluster; empty if it is deleted
	result  *DetachResult
}

// Detach makes a management cluster forget a workload cluster, and deletes no part of the workload cluster: its machines, networks and
// disks stay, and nobody manages them. Before Detach removes any object, it keeps Flux from making the cluster again. After an
// interruption, Detach goes on where the earlier run stopped.
func Detach(ctx context.Context, deps management.Deps, o DetachOptions) (*DetachResult, error) {
	ctx, cancel := steps.WithTimeout(ctx, o.Timeout)
	defer cancel()
	unlock, err := o.Target.Cluster.Lock("fleetctl cluster detach")
	if err != nil {
		return nil, err
	}
	defer unlock()
	d := &detach{Deps: deps, opts: o, result: &DetachResult{
		FormatVersion: "1", Outcome: "planned", ManagementCluster: o.Target.Name, Left: []handover.Remnant{},
		Suspended: []string{}, Next: []string{},
	}}
	if err := d.find(ctx); err != nil {
		return nil, err
	}
	if o.Abort {
		return d.abort(ctx)
	}
	if o.DryRun {
		return d.result, nil
	}
	if o.Confirm != nil {
		if err := o.Confirm(d.result); err != nil {
			return nil, err
		}
	}
	err = steps.Run(ctx, deps.Report, []steps.Step{
		{Name: "save its kubeconfig and its objects", Run: d.keep, Timeout: 2 * time.Minute},
		{Name: "suspend Flux for it", Needs: []string{"save its kubeconfig and its objects"}, Run: d.letGo, Timeout: 2 * time.Minute},
		{
			Name: "remove its objects from " + o.Target.Name, Needs: []string{"suspend Flux for it"}, Run: d.takeAway, Timeout: 15 * time.Minute,
			Hint: "run the same command again: it continues",
		},
	})
	if err != nil {
		return nil, err
	}
	d.result.Outcome = "detached"
	d.result.Next = []string{
		"fleetctl cluster remove " + d.key.Name + "    # removes it from Git, too, and deletes no machine",
		"fleetctl backup    # earlier snapshots still have the cluster: after a restore, two management clusters would manage it",
	}
	return d.result, nil
}

// reach connects to a management cluster, and reads the journal of its last hand-over (nil if there was none).
func reach(ctx context.Context, t *management.Target) (client *kube.Client, manager *capi.Manager, journal *handover.Journal, err error) {
	if client, err = t.Client(ctx); err != nil {
		return nil, nil, nil, err
	}
	if manager, err = capi.New(client); err != nil {
		return nil, nil, nil, err
	}
	journal, err = handover.ReadJournal(ctx, client)
	return client, manager, journal, err
}

// workload returns a workload cluster of the management cluster. It returns an error if the management cluster is in
// the middle of a hand-over, or has handed its work over.
func workload(
	ctx context.Context,
	t *management.Target,
	manager *capi.Manager,
	journal *handover.Journal,
	name string,
) (*capi.Cluster, error) {
	if err := handover.Restorable(t.Name, journal); err != nil {
		return nil, err
	}
	return management.FindCluster(ctx, manager, name)
}

// find looks for the cluster, or for the objects that an earlier run has left of it.
func (d *detach) find(ctx context.Context) (err error) {
	var journal *handover.Journal
	if d.client, d.manager, journal, err = reach(ctx, d.opts.Target); err != nil {
		return err
	}
	d.before = journal
	if journal != nil && journal.Detach && slices.ContainsFunc(journal.Select,
		func(full string) bool { return management.SameCluster(d.opts.Cluster, full) }) {
		namespace, name, _ := strings.Cut(journal.Select[0], "/")
		d.key = kube.Key{Namespace: namespace, Name: name}
		d.result.Cluster, d.begun = d.key.String(), journal
		d.result.Left = append(d.result.Left, journal.Left...)
		return nil // the run that began has checked everything below
	}
	cluster, err := workload(ctx, d.opts.Target, d.manager, journal, d.opts.Cluster)
	if err != nil {
		return err
	}
	d.key = cluster.Key()
	d.result.Cluster = d.key.String()
	object, err := d.manager.ClusterObject(ctx, d.key)
	if err != nil {
		return err
	}
	if cluster.Deleting {
		return diag.Errorf("wait until it is gone", "cluster %s is being deleted", cluster.FullName())
	}
	d.release = flux.ReleaseOf(object)
	by := flux.KustomizationOf(object)
	switch {
	case d.release.Name != "":
		if err := management.CheckDeclaredOnce(ctx, d.client, object); err != nil {
			return err
		}
	case by.Name != "":
		return diag.Errorf("suspend that Kustomization, or remove the cluster's manifests from its folder with prune off, "+
			"and run the same command again",
			"cluster %s is applied by Kustomization %s itself, which would make it again", cluster.FullName(), by)
	}
	return d.look(ctx)
}

// look finds out which machines would stay, and what the management cluster would refuse. An abort takes nothing away, so it is not
// refused for that.
func (d *detach) look(ctx context.Context) (err error) {
	if d.opts.Abort {
		return nil
	}
	if !d.opts.DryRun {
		d.result.Left, err = handover.CheckDetach(ctx, d.options(nil)) // the detachment itself has its warnings
		return err
	}
	var notes []string
	d.result.Left, notes, err = handover.LookDetach(ctx, d.options(nil))
	for _, note := range notes {
		d.Report.Warn(note)
	}
	return err
}

func (d *detach) options(progress func(handover.Progress)) handover.Options {
	return handover.Options{
		Source: handover.Side{Name: d.opts.Target.Name, Client: d.client}, Select: []kube.Key{d.key}, Progress: progress,
	}
}

// abort gives the cluster back to Cluster API and Flux.
func (d *detach) abort(ctx context.Context) (*DetachResult, error) {
	step := d.Report.Start("undo it")
	_, err := handover.AbortAlone(ctx, d.options(handover.Telling(step.Detail)))
	if err == nil {
		err = flux.NewSystem(d.client).TakeBack(ctx, d.key.Namespace, capi.KubeconfigSecret(d.key))
	}
	if err != nil {
		step.Fail(err)
		return nil, err
	}
	step.Done()
	d.result.Outcome = "undone"
	return d.result, nil
}

func (d *detach) letGo(ctx context.Context, _ func(string)) error {
	refs, err := flux.NewSystem(d.client).LetGo(ctx, d.release, capi.KubeconfigSecret(d.key))
	for _, ref := range refs {
		d.result.Suspended = append(d.result.Suspended, ref.String())
	}
	return err
}

func (d *detach) takeAway(ctx context.Context, detail func(string)) (err error) {
	o := d.options(handover.Telling(detail))
	if r := d.opts.Target.Record; r != nil {
		o.Fleet = r.FleetID // for the workload cluster's record that it was detached
	}
	d.result.Report, err = handover.Detach(ctx, o)
	return d.sayWayBack(ctx, err)
}

// sayWayBack returns err, the error of handover.Detach. If no detachment has begun, no journal says that there is something to undo, but
// letGo has suspended Flux: the hint then has the command that resumes it.
func (d *detach) sayWayBack(ctx context.Context, err error) error {
	if err == nil || d.begun != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	journal, failed := handover.ReadJournal(ctx, d.client)
	if failed == nil && journal != nil && journal.Detach && slices.Contains(journal.Select, d.key.String()) && journal.Begun(d.before) {
		return err
	}
	return diag.AndHint(err, "`"+diag.ShellCommand("fleetctl", "cluster", "detach", d.key.String(), "--abort")+"` resumes its Flux")
}
