// Package handover hands the work of one management cluster to another. A hand-over can be interrupted at any moment on
// either side. The same call then finishes it, or Abort undoes it.
//
// A hand-over plans, fences the source, copies, verifies, commits and releases. Both sides keep a journal of the
// hand-over, which is written by compare-and-swap. Each object that the hand-over changes carries a mark, which is
// written together with the change. So no step depends on how far an earlier run came: each step looks at the clusters
// and does what is missing. Ownership changes at the commit, a single write of the target's journal. The source is the
// owner before the commit, and the target is the owner after it.
package handover

import (
	"context"
	"fmt"
	"time"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Side is one of the two management clusters.
type Side struct {
	// Name as the user knows it.
	Name string
	// Client of its administrator.
	Client *kube.Client
	// Standby says that the management cluster is a standby, and takes over. A hand-over to a standby without this
	// field is refused.
	Standby bool
}

// Options of a hand-over.
type Options struct {
	// Fleet is the identity of the fleet.
	Fleet string
	// Source has the work, and Target gets it. Source.Client may be nil once the hand-over is committed. The hand-over
	// then does not clean up the source.
	Source, Target Side
	// Select are the Clusters to hand over; the source keeps its other Clusters. If Select is empty, the hand-over is of
	// all Clusters of the source.
	Select []kube.Key
	// Attach points the target's Flux at the fleet repo. It is called after the commit, and may be called again. Nil
	// leaves Flux as it is.
	Attach func(ctx context.Context, target *kube.Client, detail func(string)) error
	// Check, if not nil, is called before the commit, once both sides are equal. Its client passes the target's fence.
	// Check changes nothing at the target. An error of Check stops the hand-over, which can then be continued or
	// undone.
	Check func(ctx context.Context, target *kube.Client) error
	// BlockMove bounds the wait for objects with the annotation block-move. Drain bounds the wait for processes to end
	// or to start, and for objects that are still being created. 0 means the default.
	BlockMove, Drain time.Duration
	// Progress, if not nil, receives the progress of the hand-over, from several goroutines.
	Progress func(Progress)
}

// The defaults of Options.
const (
	DefaultBlockMove = 10 * time.Minute
	DefaultDrain     = 5 * time.Minute
)

// Progress tells how far a hand-over is.
type Progress struct {
	Phase Phase
	// Detail says what the hand-over is doing.
	Detail string
	// Done of Total objects. Both are 0 where nothing is counted.
	Done, Total int
	// Silent names the side that has not answered for a while; "" if both answer.
	Silent string
}

// String is one line of progress, with counts if something is counted.
func (p Progress) String() string {
	text := p.Detail
	if p.Total != 0 {
		text = fmt.Sprintf("%s: %d of %d", p.Detail, p.Done, p.Total)
	}
	if p.Silent != "" { // comes first, because a terminal shows no more than the beginning of a line
		return fmt.Sprintf("%s (%s); wait, or interrupt this and run the same command later", p.Silent, text)
	}
	return text
}

// Telling returns the Progress of Options for detail, which takes one line at a time. It returns nil for nil.
func Telling(detail func(string)) func(Progress) {
	if detail == nil {
		return nil
	}
	return func(p Progress) { detail(p.String()) }
}

// Report tells what a hand-over has done.
type Report struct {
	ID    string `json:"id"`
	Phase Phase  `json:"phase"`
	// Source and Target are names. Epoch is the number of times that the work has changed hands.
	Source string `json:"source"`
	Target string `json:"target"`
	Epoch  int64  `json:"epoch"`
	// Moved counts the objects by kind.
	Moved    map[string]int `json:"moved"`
	Clusters []string       `json:"clusters"`
	// Available are the Clusters that were Available at the source before the hand-over.
	Available []string `json:"available"`
	Warnings  []string `json:"warnings"`
}

// Run hands the work over. If the journals of both sides name a hand-over, Run continues it, also if another machine
// began it. Otherwise Run begins one. Run returns a nil error only once everything is done: the target's controllers
// run, and the source has nothing left of the hand-over.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	ctx, tell, named := attend(ctx, o.Progress, o.Source, o.Target)
	o.Progress = tell
	defer func() { err = named(err) }()
	r, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	if r.undoing() { // the earlier abort was cut off: finish it, then begin again
		if _, err := r.abort(ctx); err != nil {
			return r.report(), err
		}
		if r, err = open(ctx, o); err != nil {
			return nil, err
		}
	}
	if r.finished() {
		return r.report(), nil
	}
	if !r.committed() {
		if err := r.hand(ctx); err != nil {
			return r.report(), err
		}
	}
	return r.report(), r.release(ctx)
}

// Abort undoes a hand-over that is not committed. The source is then as it was before, and the target has none of the
// copies. After the commit Abort returns an error, and only Run can continue.
func Abort(ctx context.Context, o Options) (_ *Report, err error) {
	ctx, tell, named := attend(ctx, o.Progress, o.Source, o.Target)
	o.Progress = tell
	defer func() { err = named(err) }()
	r, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	return r.abort(ctx)
}

// AbortAlone is Abort for a target that cannot be reached. The source is then as it was before. AbortAlone returns an
// error if the source's journal says that the target may have taken over. The copies stay at the target, where no
// controller acts on them. Once the target can be reached again, Abort removes them.
func AbortAlone(ctx context.Context, o Options) (_ *Report, err error) {
	ctx, tell, named := attend(ctx, o.Progress, o.Source)
	o.Progress = tell
	defer func() { err = named(err) }()
	r, err := openSource(ctx, o)
	if err != nil {
		return nil, err
	}
	return r.abortAlone(ctx)
}

// hand does everything up to the commit.
func (r *run) hand(ctx context.Context) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	graph, err := r.fence(ctx)
	if err != nil {
		return err
	}
	r.behind = graph
	if err := r.mark(ctx, PhaseFenced); err != nil {
		return err
	}
	if err := r.copy(ctx, graph); err != nil {
		return err
	}
	if err := r.mark(ctx, PhaseCopied); err != nil {
		return err
	}
	if err := r.verify(ctx, graph); err != nil {
		return err
	}
	return r.commit(ctx)
}
