package lifecycle

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/pivot"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// DefaultClustersTimeout is how long the declared clusters may take to become Available. Clouds take minutes to make
// one.
const DefaultClustersTimeout = 45 * time.Minute

// BootstrapOptions say what `fleetctl bootstrap` does on top of init.
type BootstrapOptions struct {
	session.Options
	// PivotTo is the workload cluster, NAME or NAMESPACE/NAME, that becomes the management cluster; empty: none does.
	PivotTo string
	// KubeconfigOut is a file that gets the kubeconfig of the cluster that holds the work in the end.
	KubeconfigOut string
	// SourceIsGone says that the management cluster of the snapshots is gone, and will never act again. Bootstrap then
	// continues from its newest snapshot.
	SourceIsGone bool
	// KeepCredentials leaves all credentials of the providers on the cluster that takes over.
	KeepCredentials bool
	// ClustersTimeout bounds the wait for the declared clusters; 0 is DefaultClustersTimeout.
	ClustersTimeout time.Duration
	// SupportFile is the file for the support bundle of a failed run; empty: a file in the state folder.
	SupportFile string
}

// ClusterResult is the state of one declared cluster at the end of the run.
type ClusterResult struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Available bool   `json:"available"`
	Reason    string `json:"reason,omitempty"`
}

// BootstrapResult is what Bootstrap did. Outcome is ready, not-ready or failed. The exit code says the same.
type BootstrapResult struct {
	FormatVersion string           `json:"formatVersion"`
	Outcome       string           `json:"outcome"`
	Error         string           `json:"error,omitempty"`
	Fleet         string           `json:"fleet"`
	Cluster       string           `json:"cluster"`
	PivotedTo     string           `json:"pivotedTo,omitempty"`
	Kept          bool             `json:"kept"`
	GitURL        string           `json:"gitURL"`
	Branch        string           `json:"branch"`
	Revision      string           `json:"revision"`
	Kubeconfig    string           `json:"kubeconfig"`
	SupportBundle string           `json:"supportBundle,omitempty"`
	Clusters      []ClusterResult  `json:"clusters"`
	Leftovers     []string         `json:"leftovers"`
	Steps         []progress.Event `json:"steps"`
}

// ClusterNames returns the names of the clusters as NAMESPACE/NAME.
func (r *BootstrapResult) ClusterNames() []string {
	names := make([]string, 0, len(r.Clusters))
	for _, c := range r.Clusters {
		names = append(names, kube.Key{Namespace: c.Namespace, Name: c.Name}.String())
	}
	return names
}

// Bootstrap runs Init on an ephemeral cluster and waits until the Clusters that the fleet repo declares are Available.
// If the options name a permanent cluster, it then hands the work over. Bootstrap returns a result with an error, too,
// once there is something to report.
//
// Ephemeral describes the purpose of the cluster, and not how long its host runs. From the first machine until the
// pivot, only this cluster records what exists in a cloud. So its host, the embedded one too, keeps running in the
// background after an error, a Ctrl-C or a kill -9, and the same command continues. The host is deleted by
// stepTeardown, once the target has taken over, or by teardown, which refuses while Clusters exist only there.
func Bootstrap(ctx context.Context, deps management.Deps, o BootstrapOptions) (*BootstrapResult, error) {
	ctx, cancel := steps.WithTimeout(ctx, o.Timeout)
	defer cancel()
	o.FormerIsGone = o.SourceIsGone
	s, done, err := session.OpenAlone(ctx, deps, o.Options, "fleetctl bootstrap")
	if err != nil {
		return nil, err
	}
	defer done()

	if err := s.RefuseStandby(); err != nil {
		return nil, err
	}
	if err := makeRepository(ctx, s); err != nil {
		return nil, err
	}
	b := newBootstrap(s, o)
	if pivoted, err := b.alreadyPivoted(ctx); pivoted || err != nil {
		return b.finish(err)
	}
	if err := errors.Join(b.checkPivotSource(), s.RefuseChild(o.PivotTo)); err != nil {
		return nil, err
	}
	if b.move.Under == nil {
		if err := b.findHandover(ctx); err != nil {
			return b.finish(err)
		}
	}
	if b.move.Under == nil {
		if err := b.fromSnapshot(ctx); err != nil {
			return b.finish(err)
		}
	}
	return b.finish(b.withSupport(ctx, steps.Run(ctx, deps.Report, b.steps())))
}

type bootstrap struct {
	session *session.Session
	opts    BootstrapOptions
	result  *BootstrapResult
	init    *converge.Run
	move    *pivot.Move
	// restore is set if the run begins from a snapshot that another runner has kept.
	restore *pivot.Restoration
	// clusters is set when the declared clusters are Available.
	clusters *steps.Value[clustersThere]
}

// clustersThere says that the declared clusters are Available.
type clustersThere struct{}

func newBootstrap(s *session.Session, o BootstrapOptions) *bootstrap {
	init := converge.NewRun(s)
	move := pivot.NewMove(init, o.PivotTo)
	move.KeepCredentials = o.KeepCredentials
	return &bootstrap{
		session: s, opts: o, init: init, move: move, clusters: steps.NewValue[clustersThere]("the declared clusters"),
		result: &BootstrapResult{
			FormatVersion: "1", Outcome: "failed", Fleet: s.Fleet.Metadata.Name, Cluster: s.Mgmt.Name,
			Clusters: []ClusterResult{}, Leftovers: []string{},
		},
	}
}

const (
	stepClusters = "wait for the declared clusters"
	stepTeardown = "delete bootstrap cluster"
)

func (b *bootstrap) steps() []steps.Step {
	timeout := b.opts.ClustersTimeout
	if timeout <= 0 {
		timeout = DefaultClustersTimeout
	}
	all := b.init.Steps()
	if b.restore != nil {
		all = b.restore.InitSteps()
	}
	if b.session.SnapshotsTo() != "" {
		all = append(all, steps.Step{
			Name: stepSnapshots, Needs: []string{converge.StepConnect},
			Work: steps.Do3(b.keepSnapshots, b.init.Client, b.init.Pushed, steps.Later(b.clusters)),
			Hint: "the snapshots are kept at spec.snapshots.to in fleet.yaml", Timeout: timeout + time.Hour,
		})
	}
	all = append(all, steps.Step{
		Name: stepClusters, Needs: []string{converge.StepSynced},
		Work: steps.Do1(b.waitClusters, b.init.Client).Telling(b.clusters), Timeout: timeout,
		Hint: "`fleetctl status` shows why; run the same command again to go on",
	})
	if b.opts.PivotTo == "" {
		return all
	}
	after := stepClusters
	if b.move.Under != nil { // a source that hands over creates nothing, and its Flux is suspended
		all, after = b.move.StepsGoingOn(), converge.StepPush
	}
	moves := b.move.Steps(after)
	if b.session.SnapshotsTo() != "" && b.move.Under == nil { // no snapshot is kept after the note that another cluster has the work
		for i := range moves {
			if moves[i].Name == pivot.StepTarget {
				moves[i].Needs = append(slices.Clone(moves[i].Needs), stepSnapshots)
			}
		}
	}
	all = append(all, moves...)
	return append(all, steps.Step{
		Name: stepTeardown, Needs: []string{pivot.StepWithdraw}, Work: steps.Do1(b.endBootstrap, b.move.Target), Timeout: 5 * time.Minute,
		Hint: "run the same command again",
	})
}

// findHandover looks for a hand-over that an earlier run has begun, on this machine or another.
func (b *bootstrap) findHandover(ctx context.Context) error {
	if b.session.HostErr != nil {
		return nil //nolint:nilerr // preflight reports it with the other problems
	}
	b.awaitStarting(ctx)
	if err := b.move.Look(ctx); err != nil {
		return err
	}
	if b.move.Under != nil && b.opts.PivotTo == "" {
		return diag.Usage("run it again with --pivot-to "+b.move.Under.Target.Name+"; before the commit, `fleetctl pivot --abort` undoes it",
			"the management cluster %s is being handed over to %s", b.session.Mgmt.Name, b.move.Under.Target.Name)
	}
	return nil
}

// endBootstrap deletes the bootstrap cluster after a pivot.
func (b *bootstrap) endBootstrap(ctx context.Context, target *pivot.Target, detail func(string)) error {
	b.result.PivotedTo = target.Name
	if err := b.noteClusters(ctx, target.Manager()); err != nil { // a run that goes on with a hand-over has waited for none
		return err
	}
	if b.move.Gone {
		return steps.NothingToDo("the bootstrap cluster is deleted already")
	}
	return b.deleteBootstrap(ctx, detail)
}

// waitClusters waits until every Cluster that nobody has paused is Available, and waitWorkloads returns. By then, the management cluster's
// Flux has applied the whole revision, so every declared Cluster exists.
func (b *bootstrap) waitClusters(ctx context.Context, client *kube.Client, detail func(string)) error {
	manager, err := capi.New(client)
	if err != nil {
		return err
	}
	waitErr := manager.WaitAvailable(ctx, nil, detail)
	if waitErr == nil {
		waitErr = b.waitWorkloads(ctx, client, manager, detail)
	}
	if waitErr == nil {
		b.clusters.Tell(clustersThere{})
	}
	if err := b.noteClusters(context.WithoutCancel(ctx), manager); err != nil && waitErr == nil {
		return err
	}
	return waitErr
}

// noteClusters puts the state of each cluster into the result. It also runs after a wait that ran out of time.
func (b *bootstrap) noteClusters(ctx context.Context, manager *capi.Manager) error {
	ctx, cancel := context.WithTimeout(ctx, session.LookTimeout)
	defer cancel()
	clusters, err := manager.Clusters(ctx)
	if err != nil {
		return err
	}
	b.result.Clusters = b.result.Clusters[:0]
	for _, c := range clusters {
		b.result.Clusters = append(b.result.Clusters, ClusterResult{
			Namespace: c.Namespace, Name: c.Name,
			Available: c.Available, Reason: c.Reason,
		})
	}
	return nil
}

// deleteBootstrap deletes the bootstrap cluster if it manages no Cluster any more. A Cluster that was created after the
// move exists only there.
func (b *bootstrap) deleteBootstrap(ctx context.Context, _ func(string)) error {
	if err := b.checkHandedOver(ctx); err != nil {
		return err
	}
	left, err := b.session.Host.Delete(ctx)
	b.result.Leftovers = append(b.result.Leftovers, left...)
	return err
}

// checkHandedOver returns an error if the bootstrap cluster still has Clusters. It starts a stopped host for this look.
func (b *bootstrap) checkHandedOver(ctx context.Context) error {
	st, err := b.session.Host.State(ctx)
	if err == nil && st == host.StateStopped {
		st, err = b.session.Host.Start(ctx, nil)
	}
	if err != nil || st != host.StateRunning {
		return err
	}
	client, err := management.Reach(ctx, b.session.Host)
	if err != nil {
		return err
	}
	clusters, err := management.Clusters(ctx, client)
	if err != nil {
		return diag.Wrap("list the remaining workload clusters of "+b.session.Mgmt.Name, err, "")
	}
	return management.Appeared(b.session.Mgmt.Name, nil, clusters, "since the others were moved")
}

// finish fills in the rest of the result.
func (b *bootstrap) finish(err error) (*BootstrapResult, error) {
	r := b.result
	if pushed, made := b.init.Pushed.Peek(); made {
		r.Revision = pushed.Revision
	}
	r.Branch = b.session.Fleet.Spec.Git.Branch
	if endpoint, made := b.init.Endpoint.Peek(); made {
		r.GitURL = endpoint.Display
	}
	r.Kubeconfig = b.session.Cluster.Path(management.KubeconfigFile)
	if err == nil && b.opts.KubeconfigOut != "" {
		err = b.copyKubeconfig()
	}
	r.Kept = r.PivotedTo == ""
	switch diag.Code(err) {
	case diag.ExitOK:
		r.Outcome = "ready"
	case diag.ExitNotReady:
		r.Outcome = "not-ready"
	}
	if err != nil {
		r.Error = err.Error()
	}
	return r, err
}

func (b *bootstrap) copyKubeconfig() error {
	content, err := os.ReadFile(b.session.Cluster.Path(management.KubeconfigFile)) // the kubeconfig of the cluster that has the work now
	if err != nil {
		return err
	}
	if err := kube.WriteKubeconfig(b.opts.KubeconfigOut, content); err != nil {
		return err
	}
	b.result.Kubeconfig = b.opts.KubeconfigOut
	return nil
}

// checkPivotSource refuses, before anything is created, a fleet repo that the target of the pivot could never read: an
// embedded host serves a fleet repo without a remote on this machine's loopback address.
func (b *bootstrap) checkPivotSource() error {
	if b.opts.PivotTo == "" || !b.session.Traits().Processes || b.session.Fleet.Spec.Git.Scheme() != v1alpha1.GitLocal {
		return nil
	}
	return diag.Usage("give the fleet repo a remote with --git-url, or bootstrap with --host kind",
		"%s cannot take over: with the embedded host, a fleet repo without a remote is served on this machine's loopback only", b.opts.PivotTo)
}
