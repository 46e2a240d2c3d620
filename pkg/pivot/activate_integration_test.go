//go:build integration

package pivot

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// An activation that has taken over cannot be undone, and the hint names the command that finishes it.
func TestStandbyThatTookOverIsNotUndone(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	over := handover.Journal{
		Role: handover.RoleTarget, Phase: handover.PhaseReleased, Activates: true, Snapshot: "20260101T000000Z-abcdef",
		Source: handover.Party{Name: "lost", UID: "1"}, Target: handover.Party{Name: "spare", UID: "2"},
	}
	if err := e.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: handover.JournalKey.Namespace}}); err != nil {
		t.Fatal(err)
	}
	e.WriteJournal(ctx, t, over)
	s := &session.Session{Deps: e.Deps, Mgmt: &v1alpha1.ManagementCluster{Name: "spare"}, StandbyOf: "lost"}
	a := &activation{Restoration: &Restoration{session: s}, client: e.Client, journal: &over, result: &ActivateResult{}}
	if err := a.undo(ctx); err == nil || !strings.Contains(err.Error(), "this cannot be undone") ||
		!strings.Contains(diag.Hint(err), "`fleetctl standby activate spare` finishes") {
		t.Errorf("%v, %q", err, diag.Hint(err))
	}
	over.Phase, over.Snapshot = handover.PhaseCommitted, "" // by --hand-over, and this machine does not reach the other one
	for _, gone := range []bool{false, true} {
		a.opts.SourceIsGone = gone
		if err := a.undo(ctx); err == nil || !strings.Contains(err.Error(), "this cannot be undone") ||
			!strings.Contains(diag.Hint(err), "`fleetctl standby activate spare` finishes") {
			t.Errorf("after the commit of a hand-over, gone %t: %v, %q", gone, err, diag.Hint(err))
		}
	}
}

// A run that was killed after its last change of the fleet repo has printed nothing: the same command says what it did. A management
// cluster that never was a standby is refused.
func TestStandbyThatTookOverBefore(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	s, err := e.Take(ctx, t)
	if err != nil {
		t.Fatal(err)
	}
	o := ActivateOptions{Options: session.Options{Dir: e.Dir}}
	if _, err := ActivateStandby(ctx, e.Deps, o); err == nil || !strings.Contains(err.Error(), "is no standby") {
		t.Errorf("without a journal: %v", err)
	}
	e.WriteJournal(ctx, t, handover.Journal{
		Role: handover.RoleTarget, Phase: handover.PhaseReleased, Activates: true, Snapshot: "20260101T000000Z-abcdef",
		Source: handover.Party{Name: "lost", UID: "1"}, Target: handover.Party{Name: s.Mgmt.Name, UID: "2"},
	})
	r, err := ActivateStandby(ctx, e.Deps, o)
	if err != nil || r.Outcome != "activated" || r.Of != "lost" || r.Cluster != s.Mgmt.Name {
		t.Errorf("%+v, %v", r, err)
	}
	o.Abort = true
	if _, err := ActivateStandby(ctx, e.Deps, o); err == nil {
		t.Error("an abort after the end succeeds")
	}
}

// A cluster that the first run has paused stays paused in the next run, also if its API server no longer names another owner.
func TestRestoreGoesOnPaused(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	s, err := e.Take(ctx, t)
	if err != nil {
		t.Fatal(err)
	}
	begun := handover.Journal{
		Role: handover.RoleTarget, Phase: handover.PhasePlanned, Snapshot: "20260101T000000Z-abcdef", Pause: []string{"shop/shop"},
		Source: handover.Party{Name: s.Mgmt.Name, UID: "1"}, Target: handover.Party{Name: s.Mgmt.Name, UID: "2"},
	}
	e.WriteJournal(ctx, t, begun)
	r := NewRestoration(converge.NewRun(s))
	r.Snap = &snapshot.Snapshot{
		ID: begun.Snapshot, Fleet: s.Identity(), ManagementCluster: s.Mgmt.Name,
		Objects: []capi.Portable{{Object: json.RawMessage(shop)}},
	}
	if err := r.Check(ctx, true); err != nil {
		t.Fatal(err)
	}
	if got := string(r.Snap.Objects[0].Object); !strings.Contains(got, `"paused":true`) {
		t.Errorf("it comes back as %s", got)
	}
}

// A run that continues an activation refuses to take over beside a management cluster that answers, as the first run does.
func TestStandbyGoesOnBesideALivingOne(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	living, err := e.Take(ctx, t)
	if err != nil {
		t.Fatal(err)
	}
	s := &session.Session{
		Deps: e.Deps, Opts: session.Options{Dir: e.Dir}, Fleet: living.Fleet, Mgmt: &v1alpha1.ManagementCluster{Name: "spare"},
		StandbyOf: living.Mgmt.Name,
	}
	rest := &handover.Journal{Role: handover.RoleStandby, Phase: handover.PhaseFenced, Standby: &handover.Standby{Of: living.Mgmt.Name}}
	middle := &handover.Journal{
		Role: handover.RoleTarget, Phase: handover.PhaseCopied, Activates: true, Snapshot: "20260101T000000Z-abcdef",
		Source: handover.Party{Name: living.Mgmt.Name}, Before: rest,
	}
	for _, journal := range []*handover.Journal{rest, middle} {
		a := &activation{
			Restoration: NewRestoration(converge.NewRun(s)), opts: ActivateOptions{SourceIsGone: true}, journal: journal,
			result: &ActivateResult{},
		}
		if err := a.settle(ctx); err == nil || !strings.Contains(err.Error(), "answers at") {
			t.Errorf("%s: %v", journal.What(), err)
		}
	}
	tried := *middle
	tried.Tries = true
	a := &activation{
		Restoration: NewRestoration(converge.NewRun(s)), opts: ActivateOptions{HandOver: true, DryRun: true}, client: e.Client, journal: &tried,
		result: &ActivateResult{},
	}
	if err := a.settle(ctx); err == nil || !strings.Contains(err.Error(), "was interrupted") ||
		!strings.Contains(diag.Hint(err), "fleetctl standby refresh spare") {
		t.Errorf("a dry run beside an interrupted try: %v", err)
	}
}
