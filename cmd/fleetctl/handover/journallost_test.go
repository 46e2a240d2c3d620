//go:build e2e

package handover

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/handover"
)

// lostJournal is a hand-over that is killed, one of whose journals somebody deletes, and which then is run again or aborted.
type lostJournal struct {
	kill   kill
	target bool // whose journal is lost; else the source's
	verb   string
}

func (l lostJournal) String() string {
	side := "source"
	if l.target {
		side = "target"
	}
	return fmt.Sprintf("a hand-over, %s, the journal of the %s deleted", l.kill, side)
}

// deleteJournal does by hand what nobody should.
func (s *side) deleteJournal(ctx context.Context, t *testing.T) {
	t.Helper()
	path := "/api/v1/namespaces/" + handover.JournalKey.Namespace + "/secrets/" + handover.JournalKey.Name
	if err := s.request(ctx, http.MethodDelete, path, nil, nil); err != nil && !hasCode(err, http.StatusNotFound) {
		t.Fatal(err)
	}
}

// TestJournalLost deletes one of the two journals in the middle of a hand-over: the other one tells, so the same again finishes it, or an
// abort undoes it, and never does an abort take anything from a target that has the work. Where the target may have the work, and neither
// its journal nor its Clusters tell, both refuse.
func TestJournalLost(t *testing.T) {
	b := newBed(t, engine(t), *worlds, func(ctx context.Context, t testing.TB, s *seeder) { s.fleet(ctx, t) }, true)
	w := b.worlds[0]
	o := w.execute(t.Context(), t, b.program, handOver, w.restore(t.Context(), t, w.beginning), &run{})
	if o.code != 0 {
		t.Fatalf("without a fault: exit %d:\n%s", o.code, o.output)
	}
	var cases []lostJournal
	for _, k := range b.share(everyWrite(o.count()), max(6, *kills/12)) {
		for n := range 2 {
			cases = append(cases, lostJournal{k, b.random.IntN(3) == 0, []string{handOver, abort}[n]})
		}
	}
	forEach(t, b, "a journal is lost", cases, b.withoutJournal)
	t.Logf("%d kills", b.kills.Load())
}

func (b *bed) withoutJournal(t *testing.T, w *world, l lostJournal) {
	ctx := t.Context()
	machine, story := w.restore(ctx, t, w.beginning), l.String()
	if _, struck := b.killed(ctx, t, w, handOver, machine, l.kill); !struck {
		return
	}
	lost := w.source
	if l.target {
		lost = w.target
	}
	lost.deleteJournal(ctx, t)
	o := w.execute(ctx, t, b.program, l.verb, machine, &run{})
	switch {
	case l.target && o.code != 0 && strings.Contains(o.output, "its journal does not say so any more"):
		b.hold(t, b.judge(w).meanwhile(ctx, t), story+", then "+l.verb+" that refused", o)
	case l.verb == handOver && o.code != 0:
		t.Errorf("%s, then again: exit %d:\n%s", story, o.code, o.output)
	case l.verb == handOver:
		b.hold(t, b.judge(w).handedOver(ctx, t), story+", then again", o)
	case o.code == 0:
		b.hold(t, b.judge(w).asBefore(ctx, t), story+", then abort", o)
	default: // only forward is left
		b.finish(ctx, t, w, machine, fmt.Sprintf("%s, then an abort that said %q", story, lastLine(o.output)))
	}
}
