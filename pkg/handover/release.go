package handover

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// release does everything after the commit. Then the target works, and the source has nothing left of the hand-over.
func (r *run) release(ctx context.Context) error {
	if r.target.as == nil { // an earlier run has committed
		if err := r.act(ctx); err != nil {
			return err
		}
		if err := r.takeOverFences(ctx); err != nil {
			return err
		}
	}
	if r.source != nil {
		if err := r.noteCommitted(ctx); err != nil {
			return err
		}
	}
	copies := r.copies
	if copies == nil {
		var err error
		if copies, err = r.target.manager.Copies(ctx, r.target.journal.ID); err != nil {
			return err
		}
	}
	if err := r.releaseSides(ctx, copies); err != nil {
		return err
	}
	if err := r.asAvailable(ctx); err != nil {
		return err
	}
	if !r.target.borrowed {
		r.recordOwners(ctx)
	}
	return r.noteReleased(ctx)
}

// releaseSides releases both sides at once: the target has all objects, so the source can lose them while the target's API
// server notices that its fence is gone, and its controllers start. What fails at one side does not stop the other.
func (r *run) releaseSides(ctx context.Context, copies []*unstructured.Unstructured) error {
	copied := originals(copies) // before the release of the target changes copies
	var both errgroup.Group
	var atTarget, atSource error
	if r.target.journal.Phase != PhaseReleased {
		both.Go(func() error { atTarget = r.releaseTarget(ctx, copies); return nil })
	}
	if r.source != nil {
		both.Go(func() error { atSource = r.releaseSource(ctx, copied); return nil })
	}
	_ = both.Wait() // the errors are in atTarget and atSource
	return errors.Join(atTarget, atSource)
}

// noteCommitted writes the new owner into the source's journal.
func (r *run) noteCommitted(ctx context.Context) error {
	if r.source.journal.Phase.reached(PhaseCommitted) {
		return nil
	}
	next := *r.source.journal
	next.Phase, next.Owner, next.Epoch = PhaseCommitted, r.target.journal.Owner, r.target.journal.Epoch
	return r.source.put(ctx, &next)
}

// noteReleased notes on both sides that everything is done. It writes the source's journal first, so that the target's
// journal says it only once nothing is left to do on either side.
func (r *run) noteReleased(ctx context.Context) error {
	for _, s := range r.sides() {
		if s.journal.Phase == PhaseReleased {
			continue
		}
		next := *s.journal
		next.Phase, next.Before, next.Owners = PhaseReleased, nil, nil
		if err := s.put(ctx, &next); err != nil {
			return err
		}
	}
	return nil
}

// owner returns the new owner of the Clusters, as their annotations name it from now on.
func (r *run) owner() capi.Owner { return r.target.journal.owner() }

func (j *Journal) owner() capi.Owner {
	o := capi.Owner{Fleet: j.Fleet, ManagementCluster: j.Owner.Name, UID: j.Owner.UID, Epoch: j.Epoch}
	if j.Snapshot == "" && j.Source.UID != j.Owner.UID { // what a snapshot is of has handed nothing over
		o.From = j.Source.UID
	}
	return o
}

// releaseTarget starts the target's controllers and its Flux.
func (r *run) releaseTarget(ctx context.Context, copies []*unstructured.Unstructured) error {
	r.tell(PhaseReleased, "starting "+r.target.Name)
	if err := r.unpauseCopies(ctx, copies); err != nil {
		return err
	}
	if err := r.unfence(ctx, r.target); err != nil {
		return err
	}
	if r.Attach != nil {
		if err := r.Attach(ctx, r.target.Client, func(detail string) { r.tell(PhaseReleased, detail) }); err != nil {
			return err
		}
	}
	if r.whole() {
		if _, err := flux.NewSystem(r.target.as).Resume(ctx); err != nil {
			return err
		}
	}
	return r.deleteDeleting(ctx, copies)
}

// unpauseCopies lets the target's controllers act on the copies, and notes in each Cluster that the target owns it. A Cluster that begins
// paused stays paused, and its note stays as it was: another management cluster owns it.
func (r *run) unpauseCopies(ctx context.Context, copies []*unstructured.Unstructured) error {
	theirs := func(obj *unstructured.Unstructured) bool {
		return obj.GetKind() == "Cluster" && r.target.journal.beginsPaused(kube.RefOf(obj).Key.String())
	}
	own := slices.DeleteFunc(slices.Clone(copies), theirs)
	if err := r.target.manager.Unpause(ctx, own, r.owner().String()); err != nil || len(own) == len(copies) {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(copies), func(obj *unstructured.Unstructured) bool { return !theirs(obj) })
	return r.target.manager.Unpause(ctx, others, "")
}

// unfence takes the fence of one side down, lets the API server call the webhooks again, and starts the controllers.
func (r *run) unfence(ctx context.Context, s *side) error {
	if err := s.lower(ctx); err != nil {
		return err
	}
	if err := s.restoreWebhooks(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.Drain)
	defer cancel()
	err := s.start(ctx, func(detail string) { r.tell(PhaseReleased, s.Name+": "+detail) })
	return diag.Wrap("start the controllers of "+s.Name, err, "run the same command again")
}

// deleteDeleting deletes copies at the target whose originals had a deletion timestamp at the source, where finalizers
// still kept them.
func (r *run) deleteDeleting(ctx context.Context, copies []*unstructured.Unstructured) error {
	var errs []error
	for _, c := range copies {
		if _, asked := c.GetAnnotations()[capi.DeletingMark]; asked {
			errs = append(errs, r.target.as.Delete(ctx, []*unstructured.Unstructured{c}, kube.DeleteOptions{}))
		}
	}
	return errors.Join(errs...)
}

// asAvailable checks that every Cluster that was handed over exists at the target.
func (r *run) asAvailable(ctx context.Context) error {
	if r.target.borrowed {
		return nil // some Clusters may have been handed to a third management cluster since
	}
	clusters, err := r.target.manager.Clusters(ctx)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, c := range clusters {
		there[c.FullName()] = true
	}
	var errs []error
	for _, name := range r.target.journal.Clusters {
		if !there[name] {
			errs = append(errs, fmt.Errorf("the Cluster %s does not exist", name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return diag.Wrap("look at the Clusters of "+r.target.Name, err, "do not delete "+r.journal().Source.Name)
	}
	return nil
}

// abort undoes a hand-over that is not committed.
func (r *run) abort(ctx context.Context) (*Report, error) {
	if r.committed() {
		return r.report(), diag.Errorf("`"+r.journal().Command()+"` finishes it; to get the work back, hand it over in the other direction",
			"the hand-over to %s is committed: this cannot be undone", r.target.Name)
	}
	if r.source == nil || !r.source.journal.Active() && !r.target.journal.Active() {
		return r.report(), nil
	}
	r.recallTarget()
	if err := r.markAborting(ctx); err != nil {
		return r.report(), err
	}
	report := r.report()
	var left error
	if r.target.journal.Active() {
		left = r.abortTarget(ctx)
	}
	if left != nil && (ctx.Err() != nil || errors.Is(left, ErrOvertaken)) {
		return report, left
	}
	// No run can commit any more, so the source may work again, whatever is left at the target.
	if r.source.journal.Active() {
		if err := r.abortSource(ctx); err != nil {
			return report, errors.Join(left, err)
		}
	}
	if left == nil {
		return report, nil
	}
	return report, leftAtTarget{diag.Wrap("clear up "+r.target.Name, left, r.source.Name+" has its work again; change what "+
		r.target.Name+" says, and run the same command again")}
}

// ErrLeft says that an abort has given the source its work back, but could not clear up the target.
var ErrLeft = errors.New("something is left at the target")

type leftAtTarget struct{ error }

func (e leftAtTarget) Unwrap() error { return e.error }

func (leftAtTarget) Is(target error) bool { return target == ErrLeft }

// markAborting makes sure that no run can commit the hand-over any more. It writes the target's journal first, because
// a commit is a write of that journal.
func (r *run) markAborting(ctx context.Context) error {
	for _, s := range slices.Backward(r.sides()) {
		if !s.journal.Active() {
			continue
		}
		if err := s.put(ctx, s.journal.aborting(r.runner, r.by)); err != nil {
			return err
		}
	}
	if err := r.become(); err != nil {
		return err
	}
	return r.takeOverFences(ctx)
}

// abortAlone undoes the hand-over at the source. A run notes in the source's journal that the target may take over
// before it commits at the target. So the write of the source's journal that begins the abort, by compare-and-swap,
// shuts out a run that is still working.
func (r *run) abortAlone(ctx context.Context) (*Report, error) {
	j := r.source.journal
	if !j.Active() || j.Role != RoleSource {
		return r.report(), nil
	}
	if j.Detach && (len(r.Select) == 0 || j.Phase.reached(PhaseFenced)) { // some objects may already be removed
		return r.report(), BeingDetached(r.source.Name, j)
	}
	if j.Phase.reached(PhaseVerified) {
		return r.report(), diag.Errorf("give access to "+j.Target.Name+": "+wayThere(j),
			"%s may have taken over already, and only its own journal tells whether it has", j.Target.Name)
	}
	if err := r.markAborting(ctx); err != nil {
		return r.report(), err
	}
	report := r.report()
	return report, r.abortSource(ctx)
}

// wayThere returns the command that gives fleetctl access to the target, for a hint.
func wayThere(j *Journal) string {
	if j.Whole() {
		return "`fleetctl pivot --to-kubeconfig FILE`"
	}
	return "`" + j.Command() + "` on a machine that knows " + j.Target.Name + ", or `fleetctl connect --management " + j.Target.Name +
		"` here first"
}

func (r *run) abortTarget(ctx context.Context) error {
	which := func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		return r.target.manager.Copies(ctx, r.target.journal.ID)
	}
	if r.target.journal.Around {
		which = r.cameSince
		fenced, err := r.target.isFenced(ctx)
		if err == nil && fenced { // only once the other tool cannot write does the list below have all of its objects
			err = r.target.untilAdmitted(ctx, r.target.journal.Admit, false)
		}
		if err != nil {
			return err
		}
	}
	copies, err := which(ctx)
	if err != nil {
		return err
	}
	r.takeBackClaims(ctx) // while the copies still have the kubeconfigs of their clusters
	if len(copies) > 0 {
		if err := r.target.manager.Remove(ctx, copies, r.count(PhaseAborting, "removing the copies from "+r.target.Name)); err != nil {
			return err
		}
	}
	if r.target.journal.wasStandby() {
		return r.restAgain(ctx)
	}
	if err := r.unfence(ctx, r.target); err != nil {
		return err
	}
	return r.putBack(ctx, r.target)
}

func (r *run) abortSource(ctx context.Context) error {
	graph, err := r.source.manager.Graph(ctx, r.graphOptions())
	if err != nil {
		return err
	}
	var objects []*unstructured.Unstructured
	for _, item := range slices.Concat(graph.OfKind("ClusterClass"), graph.OfKind("Cluster")) {
		objects = append(objects, item.Unstructured)
	}
	if err := r.source.manager.Unpause(ctx, objects, ""); err != nil {
		return err
	}
	if err := r.unfence(ctx, r.source); err != nil {
		return err
	}
	if r.whole() {
		if _, err := flux.NewSystem(r.source.as).Resume(ctx); err != nil {
			return err
		}
	}
	return r.putBack(ctx, r.source)
}

// putBack restores the journal that one side had before the hand-over.
func (r *run) putBack(ctx context.Context, s *side) error {
	if s.journal.Before == nil {
		return s.journal.drop(ctx, s.Client)
	}
	next := *s.journal.Before
	next.version = s.journal.version
	return s.put(ctx, &next)
}
