// Package handover hands the work of one management cluster to another: it can be interrupted at any moment on either side, and the same
// call finishes it, or Abort undoes it.
//
// A hand-over plans, fences the source, copies, verifies, commits and releases. What it is about stands in a journal on both sides, which
// is written by compare-and-swap; what it has changed stands on the very object that it has changed, in the same write. So no step asks how
// far an earlier run came: each looks at the world and does what is missing. The one moment that counts is the commit, a single write of
// the target's journal. Before it the source is the owner, after it the target is, and never both.
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
	// Standby says that it is one, which is to take over. Without it a standby is refused.
	Standby bool
}

// Options of a hand-over.
type Options struct {
	// Fleet is the identity of the fleet.
	Fleet string
	// Source has the work, Target gets it. Source.Client may be nil once the hand-over is committed: what is left of the source is then not
	// cleaned up.
	Source, Target Side
	// Select are the Clusters that are handed over, while the source goes on with the others; empty: all that the source has.
	Select []kube.Key
	// Attach points the target's Flux at the fleet repo. It is called after the commit, perhaps again; nil leaves Flux as it is.
	Attach func(ctx context.Context, target *kube.Client, detail func(string)) error
	// Check, if not nil, is asked before the work changes hands, once both sides are equal, with a client that the target's fence lets pass.
	// It changes nothing there. What it returns stops the hand-over, which can be gone on with or undone.
	Check func(ctx context.Context, target *kube.Client) error
	// BlockMove bounds the wait for objects that ask to be left where they are, Drain the one for processes that have to end or to start and
	// for what is still being made. 0 is a sound default.
	BlockMove, Drain time.Duration
	// Progress, if not nil, is told how far it is, by several goroutines.
	Progress func(Progress)
}

// The defaults of Options.
const (
	DefaultBlockMove = 10 * time.Minute
	DefaultDrain     = 5 * time.Minute
)

// Progress is how far a hand-over is.
type Progress struct {
	Phase Phase
	// Detail says what is going on.
	Detail string
	// Done of Total objects; both are 0 where nothing is counted.
	Done, Total int
}

// String is one line of progress, with counts where something is counted.
func (p Progress) String() string {
	if p.Total == 0 {
		return p.Detail
	}
	return fmt.Sprintf("%s: %d of %d", p.Detail, p.Done, p.Total)
}

// Report is what a hand-over has done.
type Report struct {
	ID    string `json:"id"`
	Phase Phase  `json:"phase"`
	// Source and Target by name, Epoch the number of times that the work has changed hands.
	Source string `json:"source"`
	Target string `json:"target"`
	Epoch  int64  `json:"epoch"`
	// Moved objects by kind.
	Moved    map[string]int `json:"moved"`
	Clusters []string       `json:"clusters"`
	// Available are those of the Clusters that were Available at the source before.
	Available []string `json:"available"`
	Warnings  []string `json:"warnings"`
}

// Run hands the work over. It begins, or goes on from what the journals of both sides say, whichever machine began. It returns no error
// only when all of it is done: the target works, and the source has nothing left of it.
func Run(ctx context.Context, o Options) (*Report, error) {
	r, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	if r.undoing() { // an abort that was cut off; then all over again
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

// Abort undoes a hand-over that is not committed: the source is as it was, and the target has none of the copies. After the commit it is an
// error, and only Run goes on.
func Abort(ctx context.Context, o Options) (*Report, error) {
	r, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	return r.abort(ctx)
}

// AbortAlone is Abort where there is no way to the target any more: the source is as it was. It is an error as soon as the source's journal
// says that the target may have taken over. What was copied stays at the target, where nobody acts upon it; once that is back, Abort with a
// way there removes it.
func AbortAlone(ctx context.Context, o Options) (*Report, error) {
	r, err := openSource(ctx, o)
	if err != nil {
		return nil, err
	}
	return r.abortAlone(ctx)
}

// hand is all up to the commit.
func (r *run) hand(ctx context.Context) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	graph, err := r.fence(ctx)
	if err != nil {
		return err
	}
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
