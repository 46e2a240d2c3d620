// Package transfer hands one workload cluster from a management cluster to another management cluster of the same fleet, while both
// continue to manage their other clusters. First pkg/handover moves the objects. Then the fleet repo changes. Finally fleetctl removes the
// cluster's Flux objects at the source. Between the hand-over and the change of the fleet repo, no Flux applies the cluster.
package transfer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/steps"
	"github.com/fleetctl/fleetctl/pkg/version"
)

// Options are the options of Run.
type Options struct {
	// Cluster is a workload cluster of the fleet repo, NAME or ENVIRONMENT/NAME. To is a management cluster of the fleet. To may be empty
	// if a transfer of the cluster is under way.
	Cluster, To string
	// AcceptDifferences: see fleetrepo.TransferOptions.
	AcceptDifferences bool
	// DryRun changes nothing. Abort undoes an earlier run, unless the target has taken over.
	DryRun, Abort bool
	// WithoutTarget aborts at the source alone, if the target is gone. SourceIsGone aborts at the target alone, which To has to name.
	WithoutTarget, SourceIsGone bool
	// Change says how fleetctl carries the change of the fleet repo to Git. Change.Dir is a folder in the fleet repo.
	Change change.Options
	// Into is the target's own fleet repo, which gets the cluster's folder. It is nil if the target has none.
	Into *Into
	// Confirm, if not nil, is called before anything changes.
	Confirm func(*Result) error
	Timeout time.Duration
}

// Into is the target's own fleet repo. The transfer pushes to both repos.
type Into struct {
	// Dir is the folder of the repo. Git has the credentials for its remote.
	Dir string
	Git change.Credentials
	// From is the management cluster that has the cluster. The other repo may no longer declare the cluster.
	From string
	// Reseal encrypts files of the other repo for the keys of this repo.
	Reseal fleetrepo.Reseal
}

// Result is what a transfer did, or what it would do.
type Result struct {
	FormatVersion string `json:"formatVersion"`
	// Outcome is planned, undone, nothing-to-do, handed-over (Flux does not read the change of the fleet repo yet) or transferred.
	Outcome string `json:"outcome"`
	Cluster string `json:"cluster"`
	From    string `json:"from"`
	To      string `json:"to"`
	// SourceIsGone: the transfer was undone at the target alone. Nobody manages the cluster until its source is restored.
	SourceIsGone bool `json:"sourceIsGone,omitempty"`
	// Plan is the result of a dry run. Report is the result of the hand-over.
	Plan   *handover.Plan   `json:"plan,omitempty"`
	Report *handover.Report `json:"report,omitempty"`
	// Change is the change of the fleet repo. It is nil if an earlier run has made it.
	Change *change.Result `json:"change,omitempty"`
	// Arrival is the change of the target's own fleet repo, if it has one.
	Arrival *change.Result `json:"arrival,omitempty"`
	Next    []string       `json:"next"`
}

// transfer is one run.
type transfer struct {
	management.Deps
	opts   Options
	result *Result

	name     string // of the cluster in the fleet repo
	key      kube.Key
	declared bool // the fleet repo already has the cluster at the target
	arrived  bool // the target's own fleet repo already has the cluster
	local    bool // the fleet repo has no remote, so a commit is enough for Flux
	over     bool // the target has the cluster, and the journals are of later hand-overs
	before   bool // an earlier run has handed the cluster over
	fluxOnly bool // an earlier run has only stopped the source's Flux from applying the cluster
	from, to *side
	journal  *handover.Journal // of the transfer of this cluster that is under way; nil for none
	// here and there are the journals of the source and of the target before this run; nil for none.
	here, there *handover.Journal
	release     kube.Key
	gone        *handover.Journal // of an earlier transfer of the cluster from the source to a third management cluster
	warned      map[string]bool   // the warnings that are printed already
	// suspendedThere are the objects that the target's Flux would apply suspended, by their kind without its version; nil if it was not
	// rehearsed.
	suspendedThere map[kube.Ref]bool
	began          time.Time
}

// side is one of the two management clusters.
type side struct {
	target *management.Target
	client *kube.Client // nil if the source is gone
}

// Run transfers a workload cluster. It continues a run that was interrupted, also one on another machine.
func Run(ctx context.Context, deps management.Deps, o Options) (*Result, error) {
	ctx, cancel := steps.WithTimeout(ctx, o.Timeout)
	defer cancel()
	t := &transfer{
		Deps: deps, opts: o, began: time.Now(), warned: map[string]bool{},
		result: &Result{FormatVersion: "1", Outcome: "planned", Next: []string{}},
	}
	if err := t.find(ctx); err != nil {
		return nil, err
	}
	if t.fluxOnly {
		return t.takeBack(ctx)
	}
	unlock, err := t.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if o.Abort && o.WithoutTarget {
		return t.abortAlone(ctx)
	}
	if o.Abort && o.SourceIsGone {
		return t.abortAtTarget(ctx)
	}
	if err := t.look(ctx); err != nil {
		return nil, err
	}
	t.before = t.handedOver()
	if o.Abort {
		return t.abort(ctx)
	}
	if err := t.plan(ctx); err != nil || o.DryRun {
		return t.result, err
	}
	if o.Confirm != nil && !t.handedOver() {
		if err := o.Confirm(t.result); err != nil {
			return nil, err
		}
	}
	return t.result, t.run(ctx)
}

// handedOver tells whether the target has the cluster.
func (t *transfer) handedOver() bool {
	return t.over || t.journal != nil && t.journal.Phase.Committed()
}

// lock locks both management clusters, in the order of their names, so that two transfers in opposite directions cannot block each other.
func (t *transfer) lock() (func(), error) {
	both := []*side{t.from, t.to}
	slices.SortFunc(both, func(a, b *side) int { return strings.Compare(a.target.Name, b.target.Name) })
	var held []func()
	unlock := func() {
		for _, u := range slices.Backward(held) {
			u()
		}
	}
	for _, s := range both {
		u, err := s.target.Cluster.Lock("fleetctl cluster transfer")
		if err != nil {
			unlock()
			return nil, err
		}
		held = append(held, u)
	}
	return unlock, nil
}

// look connects to both sides and reads how far an earlier run got. The source may be gone after the target has taken over.
func (t *transfer) look(ctx context.Context) error {
	var err error
	if t.to.client, err = t.to.target.Client(ctx); err != nil {
		return t.withoutTarget(ctx, err)
	}
	there, err := handover.ReadJournal(ctx, t.to.client)
	if err != nil {
		return err
	}
	t.from.client, err = t.from.target.Client(ctx)
	if err != nil {
		if there == nil || !there.IsTransferOf(t.name) || !there.Phase.Committed() {
			if there.Active() && !kube.Answered(err) {
				err = diag.Wrap("", err, "run the same command again when it answers; if "+t.from.target.Name+" is gone for good: `fleetctl cluster "+
					"transfer "+t.name+" --to "+t.to.target.Name+" --abort --source-is-gone`")
			}
			return err
		}
		t.Report.Warn(fmt.Sprintf("this machine cannot reach the source %s, so nothing is removed there: %v", t.from.target.Name, err))
		t.from.client, t.journal = nil, there
		return t.known(there)
	}
	if err := t.sameFleet(ctx); err != nil {
		return err
	}
	here, err := handover.ReadJournal(ctx, t.from.client)
	if err != nil {
		return err
	}
	t.here, t.there = here, there
	for _, j := range []*handover.Journal{here, there} {
		switch {
		case j == nil || !j.IsTransferOf(t.name):
		case j.Source.Name == t.from.target.Name && j.Target.Name == t.to.target.Name:
			if t.journal == nil || j.Active() {
				t.journal = j
			}
		case j.Active():
			return t.toAnother(j)
		case j.Target.Name != t.from.target.Name && j.Source.Name == t.from.target.Name:
			t.gone = j
		}
	}
	return t.whichCluster(ctx)
}

// sameFleet returns an error if one of the sides is of another fleet: the fleet repo could then not declare the cluster there.
func (t *transfer) sameFleet(ctx context.Context) error {
	for _, s := range []*side{t.from, t.to} {
		claim, err := ownership.ReadClaim(ctx, s.client)
		if err != nil {
			return err
		}
		if claim == nil {
			return diag.Errorf("run `fleetctl init --management "+s.target.Name+"`, which makes it a management cluster",
				"%s is no management cluster: it belongs to no fleet", s.target.Name)
		}
		if claim.Cluster != s.target.Name {
			return diag.Errorf("find out where "+s.target.Name+" runs: `fleetctl status --management "+s.target.Name+"`",
				"the cluster at %s is %s", s.client.Host(), claim)
		}
	}
	return nil
}

// whichCluster finds the Cluster at the source, or, if it has left the source, in the journal.
func (t *transfer) whichCluster(ctx context.Context) error {
	cluster, err := t.clusterAt(ctx, t.from.client)
	if err != nil {
		return err
	}
	there := cluster != nil
	switch {
	case t.journal != nil && (t.journal.Active() || !there):
		return t.known(t.journal)
	case !there && t.journal == nil && t.gone != nil:
		return t.toAnother(t.gone)
	case !there && t.journal == nil:
		return t.nothingThere(ctx)
	}
	t.journal = nil // that transfer is over, and another one has brought the cluster back since
	manager, err := capi.New(t.from.client)
	if err != nil {
		return err
	}
	if cluster.Key() != t.declaredKey() {
		if cluster, err = management.FindCluster(ctx, manager, t.name); err != nil { // there may be two of that name
			return diag.Wrap("", err, "detach the one that the fleet repo does not declare: `fleetctl cluster detach NAMESPACE/NAME --management "+
				t.from.target.Name+"`")
		}
	}
	if cluster.Deleting {
		return diag.Errorf("a cluster that is being deleted cannot be transferred", "cluster %s is being deleted", cluster.FullName())
	}
	t.key = cluster.Key()
	object, err := manager.ClusterObject(ctx, t.key)
	if err != nil {
		return err
	}
	if t.release = flux.ReleaseOf(object); t.release.Name != "" {
		return management.CheckDeclaredOnce(ctx, t.from.client, object)
	}
	if by := flux.KustomizationOf(object); by.Name != "" {
		return diag.Errorf("first make it a cluster of a chart; or suspend that Kustomization, and move the manifests by hand",
			"Kustomization %[2]s applies the objects of cluster %[1]s without a HelmRelease, and would create them again", cluster.FullName(), by)
	}
	return nil
}

// nothingThere is the error if the source has no such Cluster, and no journal names it.
func (t *transfer) nothingThere(ctx context.Context) error {
	cluster, err := t.clusterAt(ctx, t.to.client)
	if err != nil {
		return err
	}
	// The journals are of a later hand-over, and only the change of the fleet repo is left. A stranger of that name did not arrive.
	if cluster != nil && (cluster.Key() == t.declaredKey() || cluster.Owner.ManagementCluster == t.to.target.Name) {
		t.key, t.over = cluster.Key(), true
		return nil
	}
	return diag.Errorf("wait until `fleetctl status` shows the cluster; or, if it is not made yet, move only its folder in the fleet repo",
		"neither %s nor %s has a Cluster %s", t.from.target.Name, t.to.target.Name, t.name)
}

// known takes the cluster and the state of an earlier run from the journal.
func (t *transfer) known(j *handover.Journal) error {
	namespace, name, ok := strings.Cut(j.Select[0], "/")
	if !ok {
		return diag.Errorf("look at the Secret "+handover.JournalKey.String(), "the journal names a Cluster %q", j.Select[0])
	}
	t.key = kube.Key{Namespace: namespace, Name: name}
	return nil
}

// declaredKey returns the key that the Cluster has by the layout of the fleet repo: the namespace has the name of the cluster. It is for
// cases in which neither a Cluster nor a journal tells the key.
func (t *transfer) declaredKey() kube.Key { return kube.Key{Namespace: t.name, Name: t.name} }

func (t *transfer) edit(repo *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	if t.opts.Into != nil {
		return repo.TransferAway(t.editOptions())
	}
	return repo.Transfer(t.editOptions())
}

func (t *transfer) editOptions() fleetrepo.TransferOptions {
	return fleetrepo.TransferOptions{
		Cluster: t.opts.Cluster, To: t.to.target.Name, AcceptDifferences: t.opts.AcceptDifferences,
		HandedOver: &fleetrepo.HandedOver{At: t.began, By: ownership.Somebody(), Version: version.Get().Version},
	}
}

// handOptions returns the options of the hand-over.
func (t *transfer) handOptions(detail func(string)) handover.Options {
	o := handover.Options{
		Source: handover.Side{Name: t.from.target.Name, Client: t.from.client},
		Target: handover.Side{Name: t.to.target.Name, Client: t.to.client},
		Select: []kube.Key{t.key},
	}
	if r := t.to.target.Record; r != nil {
		o.Fleet = r.FleetID
	}
	if detail != nil {
		o.Progress = func(p handover.Progress) { detail(p.String()) }
	}
	return o
}
