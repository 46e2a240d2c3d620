package handover

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// RestoreOptions are the options of Restore, Rehearse and Try.
type RestoreOptions struct {
	// Fleet is the identity of the fleet.
	Fleet string
	// Target gets the work. Its providers and Flux are installed.
	Target Side
	// Snapshot is the ID of the snapshot to restore. Source is the management cluster of the snapshot.
	Snapshot string
	Source   Party
	// Objects are the objects of the snapshot. Available are the Clusters that were Available when the snapshot was
	// taken. Epoch is how many times the work had changed hands by then.
	Objects   []capi.Portable
	Available []string
	Epoch     int64
	// Pause are the Clusters that are paused in Objects, because other management clusters manage them. The journal keeps
	// them for later runs.
	Pause []string
	// Owners are Holders.Seen of the snapshot's Clusters, of when the caller last found that nobody else manages them.
	Owners map[string]string
	// Attach, Check, Drain and Progress are as in Options.
	Attach   func(ctx context.Context, target *kube.Client, detail func(string)) error
	Check    func(ctx context.Context, target *kube.Client) error
	Drain    time.Duration
	Progress func(Progress)
}

// hand returns the options of the hand-over that the restore is part of.
func (o RestoreOptions) hand() Options {
	return Options{
		Fleet: o.Fleet, Source: Side{Name: o.Source.Name}, Target: o.Target, Attach: o.Attach, Check: o.Check,
		Drain: o.Drain, Progress: o.Progress,
	}
}

// Restore makes the target the owner of the objects of a snapshot. It is the second half of a hand-over whose source is
// gone. Restore creates the copies behind a fence at the target, compares them with the snapshot, and then takes the
// work over in one write. If the target's journal names an interrupted restore, Restore continues it. The caller has to
// know that the source is really gone, because Restore cannot fence it.
func Restore(ctx context.Context, o RestoreOptions) (_ *Report, err error) {
	ctx, tell, named := attend(ctx, o.Progress, o.Target)
	o.Progress = tell
	defer func() { err = named(err) }()
	r := newRun(o.hand())
	if r.target, err = openSide(ctx, o.Target); err != nil {
		return nil, err
	}
	j := r.target.journal
	if j != nil && j.Role == RoleTarget && j.Snapshot == o.Snapshot && j.Phase == PhaseReleased {
		return r.report(), nil
	}
	if !j.IsStandby() && !j.Tried() && (!j.Active() || j.Snapshot != o.Snapshot) {
		if err := Restorable(r.target.Name, j); err != nil {
			return nil, err
		}
	}
	if r.undoing() || j.Tried() { // an abort or a try was interrupted: first undo it to the end, then begin again
		if err := r.abortRestore(ctx); err != nil {
			return r.report(), err
		}
		if o.Owners, err = o.askAgain(ctx); err != nil {
			return r.report(), err
		}
		return Restore(ctx, o)
	}
	if !j.Active() || !j.Phase.Committed() {
		if err := r.takeIn(ctx, o); err != nil {
			return r.report(), err
		}
		if err := r.commit(ctx); err != nil {
			return r.report(), err
		}
	}
	return r.report(), r.release(ctx)
}

// askAgain asks the Clusters for the records of their owners after an abort, which has put the earlier records back.
func (o *RestoreOptions) askAgain(ctx context.Context) (map[string]string, error) {
	if o.Owners == nil {
		return nil, nil
	}
	h := Elsewhere(ctx, o.Objects, Party{Name: o.Source.Name}, o.Fleet)
	maps.DeleteFunc(h.Others, func(cluster, _ string) bool { return slices.Contains(o.Pause, cluster) })
	if len(h.Others) > 0 {
		return nil, diag.Errorf("run the same command again", "other management clusters have taken over clusters meanwhile: %s",
			strings.Join(slices.Sorted(maps.Keys(h.Others)), ", "))
	}
	return h.Seen, ctx.Err()
}

// Rehearse does what Restore does up to the commit, and stops there. No controller acts on the copies, then or later.
// The caller makes the target for the rehearsal, and deletes it afterwards. The report says what was copied. Its
// warnings say what is missing.
func Rehearse(ctx context.Context, o RestoreOptions) (*Report, error) {
	return newRun(o.hand()).rehearse(ctx, o)
}

func (r *run) rehearse(ctx context.Context, o RestoreOptions) (report *Report, err error) {
	ctx, tell, named := attend(ctx, r.Progress, o.Target)
	r.Progress = tell
	defer func() { err = named(err) }()
	r.tries = true
	if r.target, err = openSide(ctx, o.Target); err != nil {
		return nil, err
	}
	if j := r.target.journal; !j.IsStandby() {
		if o.Target.Standby {
			return nil, IsUsed(o.Target.Name, j)
		}
		if err := Restorable(r.target.Name, j); err != nil {
			return nil, err
		}
	}
	err = r.takeIn(ctx, o)
	return r.report(), err
}

// Restorable returns an error for a management cluster that is in the middle of a hand-over, or that has handed its
// work over. j is its journal.
func Restorable(name string, j *Journal) error {
	switch {
	case j == nil:
	case j.IsStandby():
		return AtRest(name, j)
	case j.Active() && j.Activates:
		return InTheMiddle(name, j)
	case j.Active() && j.Detach:
		return BeingDetached(name, j)
	case j.Active() && j.Around:
		return BeingFenced(name, j)
	case j.Active() && j.Snapshot != "":
		return diag.Errorf("first finish the restore: `fleetctl restore --snapshot "+j.Snapshot+"`",
			"%s is in the middle of being restored from the snapshot %s", name, j.Snapshot)
	case j.Active():
		return InTheMiddle(name, j)
	case j.Role == RoleSource && j.Whole():
		return handedOver(name, j)
	}
	return nil
}

// BeingDetached is the error for Clusters that are being detached from the management cluster of that name.
func BeingDetached(name string, j *Journal) error {
	return diag.Errorf("first finish the detachment: `"+j.Command()+"`",
		"%s is being detached from %s", strings.Join(j.Select, ", "), name)
}

// takeIn does everything before the commit.
func (r *run) takeIn(ctx context.Context, o RestoreOptions) error {
	graph, err := r.target.manager.GraphOf(ctx, o.Objects)
	if err != nil {
		return diag.Wrap("read the snapshot "+o.Snapshot, err,
			"install the providers that were installed when the snapshot was taken: the fleet.yaml of that time names them")
	}
	for _, item := range graph.Items {
		if err := flux.Quiet(item.Unstructured); err != nil {
			return err
		}
	}
	if err := r.beginRestore(ctx, o, graph); err != nil {
		return err
	}
	if err := r.copy(ctx, graph); err != nil {
		return err
	}
	if err := r.mark(ctx, PhaseCopied); err != nil {
		return err
	}
	return r.verify(ctx, graph)
}

// beginRestore writes the target's journal, or takes over the journal of an earlier run.
func (r *run) beginRestore(ctx context.Context, o RestoreOptions, graph *capi.Graph) error {
	if r.target.journal.Active() {
		if err := r.act(ctx); err != nil {
			return err
		}
		return r.takeOverFences(ctx)
	}
	try, err := r.tryRestore(ctx, graph)
	if err != nil {
		return err
	}
	if err := r.makeReady(ctx, try); err != nil {
		return diag.Wrap("restore into "+r.target.Name, err, "")
	}
	for _, left := range graph.Missing {
		r.warn("%s", left)
	}
	j := r.newJournal(RoleTarget, graph)
	j.Source, j.Target, j.Owner, j.Hold = o.Source, r.target.party, o.Source, try.taker.hold
	j.Epoch, j.Available, j.Snapshot, j.Pause, j.Owners = o.Epoch, o.Available, o.Snapshot, o.Pause, o.Owners
	j.over(r.target.journal)
	if err := r.target.put(ctx, j); err != nil {
		return err
	}
	return r.become()
}

// AbortRestore undoes a restore that has not taken over. It deletes the copies from the target, and changes no machine.
// If no restore is under way, AbortRestore does nothing and returns a nil report. tell, if not nil, is told how far it is.
func AbortRestore(ctx context.Context, target Side, tell func(Progress)) (_ *Report, err error) {
	ctx, tell, named := attend(ctx, tell, target)
	defer func() { err = named(err) }()
	r := newRun(Options{Target: target, Progress: tell})
	if r.target, err = openSide(ctx, target); err != nil {
		return nil, err
	}
	j := r.target.journal
	if !j.Active() || j.Snapshot == "" && !j.Around {
		return nil, nil
	}
	if j.Phase.Committed() && j.Around {
		return r.report(), diag.Errorf("`"+j.Command()+"` finishes it",
			"%s has taken over the restored objects: this cannot be undone", target.Name)
	}
	if j.Phase.Committed() && !j.Activates {
		return r.report(), diag.Errorf("`fleetctl restore` finishes it",
			"%s has taken over the objects of the snapshot %s: this cannot be undone",
			target.Name, j.Snapshot)
	}
	if j.Phase.Committed() {
		return r.report(), diag.Errorf("`"+j.Command()+"` finishes it", "%s has taken over: this cannot be undone", target.Name)
	}
	report := r.report()
	return report, r.abortRestore(ctx)
}

// AbortWithoutSource undoes, at the target, a hand-over that is not committed and whose source is gone. The write that
// begins the abort shuts out a run that is still working. AbortWithoutSource calls settled, if not nil, after that
// write, and calls it again in a later run. While settled fails, the journal stays. A source that comes back is still
// fenced, and its journal names the hand-over. If no hand-over is under way, AbortWithoutSource does nothing and returns
// a nil report. tell, if not nil, is told how far it is.
func AbortWithoutSource(
	ctx context.Context, target Side, settled func(context.Context) error, tell func(Progress),
) (_ *Report, err error) {
	ctx, tell, named := attend(ctx, tell, target)
	defer func() { err = named(err) }()
	r := newRun(Options{Target: target, Progress: tell})
	if r.target, err = openSide(ctx, target); err != nil {
		return nil, err
	}
	j := r.target.journal
	if !j.Active() || j.Role != RoleTarget || j.Around || j.Snapshot != "" {
		return nil, nil
	}
	if j.Phase.Committed() {
		return r.report(), diag.Errorf("`"+j.Command()+"` finishes it", "%s has taken over: this cannot be undone", target.Name)
	}
	report := r.report()
	if err := r.markAborting(ctx); err != nil {
		return report, err
	}
	if settled != nil {
		if err := settled(ctx); err != nil {
			return report, err
		}
	}
	return report, r.abortTarget(ctx)
}

func (r *run) abortRestore(ctx context.Context) error {
	if err := r.markAborting(ctx); err != nil {
		return err
	}
	return r.abortTarget(ctx)
}

// undoHint says how to undo the current hand-over or restore.
func (r *run) undoHint() string {
	switch j := r.journal(); {
	case j == nil:
	case j.Activates:
		return "`" + j.Command() + " --abort` undoes what it has done so far"
	case j.Snapshot != "", j.Around:
		return "`fleetctl restore --abort` undoes what it has done so far"
	case j.Detach:
		return "`" + j.Command() + " --abort` undoes it, as long as no object is removed"
	case !j.Whole():
		return "`" + j.Command() + " --abort` undoes it"
	}
	return "`fleetctl pivot --abort` undoes the hand-over"
}
