package lifecycle

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/gitserve"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/leaving"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// TeardownOptions say what `fleetctl teardown` removes.
type TeardownOptions struct {
	Target *management.Target
	// DeleteClusters deletes the workload clusters that only this management cluster manages.
	DeleteClusters bool
	// SkipDrain leaves load balancers and volumes in the cloud that Kubernetes made from inside the workload clusters.
	SkipDrain bool
	// Abandon are workload clusters, NAME or NAMESPACE/NAME, to delete although they manage clusters themselves, or do not tell.
	Abandon []string
	// DryRun stops after the plan.
	DryRun bool
	// Confirm, if not nil, is called before anything is deleted. An error of Confirm ends the command.
	Confirm func(plan *TeardownPlan) error
	Timeout time.Duration

	drainTime time.Duration // bounds the draining of one workload cluster; 0 is drainTimeout
}

// TeardownResult lists what Teardown removed, and what it could not remove.
type TeardownResult struct {
	FormatVersion   string   `json:"formatVersion"`
	Cluster         string   `json:"cluster"`
	Changed         bool     `json:"changed"`
	DeletedClusters []string `json:"deletedClusters"`
	Leftovers       []string `json:"leftovers"`
	// Plan is the plan that was shown before the deletion. It is nil if there was nothing to tear down.
	Plan *TeardownPlan `json:"plan,omitempty"`
	// Orphaned are the clusters that still have resources in their clouds.
	Orphaned []string `json:"orphaned,omitempty"`
	// NotAsked are the clouds and management clusters that did not answer. They may know of more leftovers.
	NotAsked []string         `json:"notAsked,omitempty"`
	Steps    []progress.Event `json:"steps"`
}

// Teardown removes a management cluster. It refuses while Clusters exist only there, or deletes them first if the options say so. Then it
// deletes the host, the state folder, and fleetctl's entries in the kubeconfig. It never changes the Git repository. A second run does no
// harm.
func Teardown(ctx context.Context, deps management.Deps, o TeardownOptions) (*TeardownResult, error) {
	ctx, cancel := steps.WithTimeout(ctx, o.Timeout)
	defer cancel()
	t := &teardown{Deps: deps, opts: o, result: &TeardownResult{
		FormatVersion: "1", Cluster: o.Target.Name, DeletedClusters: []string{}, Leftovers: []string{},
	}}
	if err := t.find(ctx); err != nil {
		return nil, steps.TimedOut(ctx, err)
	}
	if t.state == host.StateAbsent && o.Target.Record == nil {
		return t.result, o.Target.CheckKnown()
	}
	unlock, err := o.Target.Cluster.Lock("fleetctl teardown")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := o.Target.Reload(); err != nil {
		return nil, err
	}
	if err := t.look(ctx); err != nil {
		return nil, steps.TimedOut(ctx, err)
	}
	if err := t.refuseAnothers(ctx); err != nil {
		return nil, steps.TimedOut(ctx, err)
	}
	t.result.Plan = t.plan(ctx)
	if ctx.Err() != nil { // what did not answer in time is not gone
		return nil, steps.TimedOut(ctx, context.Cause(ctx))
	}
	if err := t.agree(); err != nil || o.DryRun {
		return t.result, err
	}
	if err := t.lookAgain(ctx, "while you were asked"); err != nil {
		return nil, steps.TimedOut(ctx, err)
	}
	if err := t.refuseAnothers(ctx); err != nil {
		return nil, steps.TimedOut(ctx, err)
	}
	if err := steps.Run(ctx, deps.Report, t.steps()); err != nil {
		return nil, t.stays(err)
	}
	t.result.Changed = true
	left, notAsked := t.leftIn()
	t.result.Leftovers, t.result.NotAsked = append(t.result.Leftovers, left...), append(t.result.NotAsked, notAsked...)
	return t.result, nil
}

type teardown struct {
	management.Deps
	opts     TeardownOptions
	result   *TeardownResult
	host     host.Host
	state    host.State
	client   *kube.Client
	manager  *capi.Manager
	rests    bool              // whether the management cluster is a standby
	clusters []capi.Cluster    // the plan that the user agreed to
	inside   []*leaving.Inside // what was found in each of these clusters
	told     map[string]bool   // the Clusters that a warning has named
}

// find finds the host and its state. It changes nothing.
func (t *teardown) find(ctx context.Context) (err error) {
	if r := t.opts.Target.Record; r != nil && r.Connected {
		return diag.Errorf("tear it down there; if it runs on a workload cluster, the management cluster that has this one deletes it: "+
			"`fleetctl teardown --management OTHER --delete-clusters`; `fleetctl connect --forget` forgets the way",
			"the management cluster %s was made by another machine", r.Name)
	}
	if r := t.opts.Target.Record; t.opts.Target.Pivoted() {
		return diag.Errorf("give the Cluster that it runs on to another management cluster (`fleetctl cluster transfer NAME --to OTHER`), and "+
			"tear that one down with --delete-clusters",
			"the management cluster %s was pivoted to %s, which is permanent", r.Name, r.PivotedTo)
	}
	if t.host, err = t.opts.Target.Host(ctx); err != nil {
		return err
	}
	if t.state, err = t.host.State(ctx); err != nil {
		return err
	}
	if t.state == host.StateForeign {
		return management.ForeignError(ctx, t.host)
	}
	return nil
}

// look finds out under the lock which Clusters the teardown would lose. It changes nothing, except that it starts a stopped host, because
// the Clusters may still run in a cloud, and only the host's API server knows them.
func (t *teardown) look(ctx context.Context) (err error) {
	if err := t.find(ctx); err != nil {
		return err
	}
	if t.state == host.StateStopped && t.opts.DryRun {
		return diag.Errorf("start it: `fleetctl host start`",
			"the management cluster %s is stopped, and only its API server knows which workload clusters it has", t.opts.Target.Name)
	}
	if t.state == host.StateStopped {
		if t.state, err = t.host.Start(ctx, nil); err != nil {
			return diag.Wrap("start the management cluster to see which workload clusters live there", err, "")
		}
	}
	if t.state != host.StateRunning {
		return nil
	}
	return management.Outlast(ctx, t.host, func() error { return t.lookInside(ctx) })
}

func (t *teardown) lookInside(ctx context.Context) (err error) {
	if t.client, err = t.opts.Target.Client(ctx); err != nil {
		return err
	}
	if t.manager, err = capi.New(t.client); err != nil {
		return err
	}
	if err := t.readJournal(ctx); err != nil {
		return err
	}
	t.clusters, err = t.list(ctx)
	return err
}

// readJournal finds out whether the management cluster is a standby. It refuses a management cluster in the middle of a hand-over: the
// other side would be left with a fence and copies that nobody finishes, and to delete copies could delete clusters that another one
// manages. A target that has taken over owns what it has.
func (t *teardown) readJournal(ctx context.Context) error {
	journal, err := handover.ReadJournal(ctx, t.client)
	t.rests = journal.IsStandby()
	if err != nil || !journal.Active() {
		return err
	}
	if journal.Role == handover.RoleTarget && journal.Phase.Committed() && !journal.Activates {
		return nil
	}
	return handover.Restorable(t.opts.Target.Name, journal)
}

func (t *teardown) list(ctx context.Context) ([]capi.Cluster, error) {
	clusters, err := t.manager.Clusters(ctx)
	if err == nil {
		clusters, err = t.onlyHere(ctx, clusters)
	}
	return clusters, diag.Wrap("list the workload clusters of "+t.opts.Target.Name, err, "")
}

// lookAgain lists the Clusters again, because the deletion is final and the user agreed to an older list. A Cluster that is not in that
// list ends the command. since says what has happened since then.
func (t *teardown) lookAgain(ctx context.Context, since string) error {
	if t.manager == nil {
		return nil
	}
	now, err := t.list(ctx)
	if err != nil {
		return err
	}
	return management.Appeared(t.opts.Target.Name, t.clusters, now, since)
}

// agree refuses or asks before anything is deleted.
func (t *teardown) agree() error {
	names := management.FullNames(t.clusters)
	if len(names) > 0 && !t.opts.DeleteClusters {
		return diag.Errorf(t.waysOut(),
			"workload clusters live only on the management cluster %s: %s", t.opts.Target.Name, strings.Join(names, ", "))
	}
	if err := errors.Join(t.paused(), t.parents()); err != nil {
		return err
	}
	if t.opts.Confirm == nil || t.opts.DryRun {
		return nil
	}
	return t.opts.Confirm(t.result.Plan)
}

func (t *teardown) steps() []steps.Step {
	return []steps.Step{
		{Name: "suspend Flux", Done: t.nothingRuns, Run: t.suspendFlux, Timeout: 2 * time.Minute},
		{
			Name: "drain workload clusters", Needs: []string{"suspend Flux"}, Done: t.nothingToDrain, Run: t.drain,
			Hint: "run teardown again to go on; with --skip-drain it leaves them in the cloud",
		},
		{
			Name: "delete workload clusters", Needs: []string{"drain workload clusters"}, Done: t.noClusters, Run: t.deleteClusters,
			Timeout: leaving.DeleteTimeout, Hint: "`fleetctl status` shows what holds them; run teardown again to go on",
		},
		{Name: "stop serving the fleet repo", Needs: []string{"delete workload clusters"}, Run: t.stopServing, Timeout: time.Minute},
		{
			Name: "delete management cluster", Needs: []string{"delete workload clusters"}, Done: t.noHost, Run: t.deleteHost,
			Timeout: 5 * time.Minute,
		},
		{
			Name: "remove state", Needs: []string{"delete management cluster", "stop serving the fleet repo"}, Run: t.removeState,
			Timeout: time.Minute,
		},
	}
}

func (t *teardown) nothingRuns(context.Context) (string, bool, error) {
	return "it does not run", t.client == nil, nil
}

func (t *teardown) noClusters(context.Context) (string, bool, error) {
	return "there are no workload clusters", len(t.clusters) == 0, nil
}

// suspendFlux keeps Flux from making deleted objects again, and from making new ones, because a commit may be on its way. If Flux has made
// a Cluster meanwhile, suspendFlux resumes Flux and returns an error.
func (t *teardown) suspendFlux(ctx context.Context, _ func(string)) error {
	system := flux.NewSystem(t.client)
	suspended, err := system.Suspend(ctx)
	if err == nil {
		err = t.lookAgain(ctx, "before Flux was suspended")
	}
	if err != nil && len(suspended) > 0 {
		_, resumeErr := system.ResumeOnly(context.WithoutCancel(ctx), suspended)
		err = errors.Join(err, resumeErr)
	}
	return err
}

func (t *teardown) deleteClusters(ctx context.Context, detail func(string)) error {
	kept, undrained := t.undrained()
	clusters := slices.DeleteFunc(slices.Clone(t.clusters), func(c capi.Cluster) bool { return kept[c.Key()] })
	keys := make([]kube.Key, 0, len(clusters))
	for _, c := range clusters {
		keys = append(keys, c.Key())
	}
	if err := t.manager.DeleteClusters(ctx, keys, detail); err != nil {
		return errors.Join(undrained, t.withRemains(ctx, err))
	}
	t.result.DeletedClusters = management.FullNames(clusters)
	for _, c := range clusters {
		t.opts.Target.ForgetCarried(ctx, t.Deps, c.Name, t.manager.Clusters)
	}
	return undrained
}

func (t *teardown) stopServing(ctx context.Context, _ func(string)) error {
	return gitserve.Stop(ctx, t.opts.Target.Cluster.Path(management.GitServeDir))
}

func (t *teardown) noHost(context.Context) (string, bool, error) {
	return "it does not exist", t.state == host.StateAbsent, nil
}

// deleteHost deletes a host without Clusters. It looks once more, because Flux may have made a Cluster until it was suspended.
func (t *teardown) deleteHost(ctx context.Context, _ func(string)) error {
	t.clusters = nil
	if err := t.lookAgain(ctx, "while the others were deleted"); err != nil {
		return err
	}
	left, err := t.host.Delete(ctx)
	t.result.Leftovers = append(t.result.Leftovers, left...)
	if err != nil || t.client == nil {
		return err
	}
	// A cluster that belongs to the user stays. If nothing on it was deleted, its Flux is resumed.
	if st, err := t.host.State(ctx); err != nil || st != host.StateRunning {
		return err
	}
	if t.rests {
		if err := handover.EndStandby(ctx, handover.Side{Name: t.opts.Target.Name, Client: t.client}); err != nil {
			return err
		}
	}
	if len(t.result.DeletedClusters) > 0 {
		return nil
	}
	_, err = flux.NewSystem(t.client).Resume(ctx)
	return err
}

// removeState removes fleetctl's entries from the user's kubeconfig, and finally the state folder. Until then teardown can run again.
func (t *teardown) removeState(ctx context.Context, _ func(string)) error {
	if r := t.opts.Target.Record; r != nil && r.MergedInto != "" {
		if _, err := kube.RemoveFromKubeconfig(ctx, r.MergedInto, management.ContextName(r.Name)); err != nil {
			return err
		}
	}
	if err := t.noteEnded(ctx); err != nil {
		return err
	}
	return errors.Join(t.opts.Target.Cluster.Remove(), atomicfile.SweepTemp(""))
}

// noteEnded notes that the host was removed on purpose, so that init makes another one without asking what has become of it.
func (t *teardown) noteEnded(ctx context.Context) error {
	r := t.opts.Target.Record
	if r == nil {
		return nil
	}
	if st, err := t.host.State(ctx); err != nil || st != host.StateAbsent {
		return err
	}
	return t.opts.Target.Cluster.NoteEnded(r.FleetID)
}
