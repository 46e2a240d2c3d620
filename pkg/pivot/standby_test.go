package pivot

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// The journal of a standby, and not a clone of the fleet repo, decides which management cluster it is a standby of.
func TestStandbyOfWhom(t *testing.T) {
	s := &session.Session{Mgmt: &v1alpha1.ManagementCluster{Name: "spare"}, StandbyOf: "platform"}
	rest := func(of string) *handover.Journal {
		return &handover.Journal{Role: handover.RoleStandby, Standby: &handover.Standby{Of: of}}
	}
	takesOver := func(from string) *handover.Journal {
		return &handover.Journal{Role: handover.RoleTarget, Activates: true, Phase: handover.PhaseCopied, Source: handover.Party{Name: from}}
	}
	for _, j := range []*handover.Journal{rest("platform"), takesOver("platform")} {
		if err := checkOf(s, j); err != nil {
			t.Errorf("%s: %v", j.What(), err)
		}
	}
	for _, j := range []*handover.Journal{rest("other"), takesOver("other")} {
		if err := checkOf(s, j); err == nil || !strings.Contains(err.Error(), "other, and not") {
			t.Errorf("%s: %v", j.What(), err)
		}
	}
}

// shop is a Cluster of a snapshot.
const shop = `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"namespace":"shop","name":"shop"},"spec":{}}`

// With --source-is-gone, a warning says why fleetctl could not ask the management cluster: a refused login does not mean that it is gone.
func TestWhySilent(t *testing.T) {
	r := &recorder{}
	s := &session.Session{
		Deps: management.Deps{Report: r, Store: state.Store{Dir: t.TempDir()}}, Opts: session.Options{Dir: t.TempDir()},
		Mgmt: &v1alpha1.ManagementCluster{Name: "spare"}, StandbyOf: "platform",
	}
	a := &activation{Restoration: NewRestoration(converge.NewRun(s)), opts: ActivateOptions{SourceIsGone: true}}
	silent, err := a.refuseLiving(t.Context())
	if err != nil || silent == nil || len(r.warned) != 1 || !strings.Contains(r.warned[0], silent.Error()) {
		t.Errorf("silent %v, %v; warned of %q", silent, err, r.warned)
	}
}

// An activation that has taken over is not undone, and the hint names the command that finishes it.
func TestTookOverIsNotUndone(t *testing.T) {
	a := &activation{Restoration: NewRestoration(converge.NewRun(
		&session.Session{Mgmt: &v1alpha1.ManagementCluster{Name: "spare"}, StandbyOf: "platform"})), journal: &handover.Journal{
		Role: handover.RoleTarget, Activates: true, Phase: handover.PhaseReleased, Target: handover.Party{Name: "spare"},
		Snapshot: "20260101T000000Z-abcdef",
	}}
	if err := a.tookOver(); !strings.Contains(err.Error(), "spare has taken over from platform") ||
		!strings.Contains(diag.Hint(err), "fleetctl standby activate spare") {
		t.Errorf("%v, hint %q", err, diag.Hint(err))
	}
}

// A cluster that an earlier run has paused stays paused, also without --pause-elsewhere.
func TestStaysPaused(t *testing.T) {
	r := &Restoration{Snap: &snapshot.Snapshot{Objects: []capi.Portable{{Object: json.RawMessage(shop)}}}}
	if err := r.checkOwnersAgain(t.Context(), &handover.Journal{Pause: []string{"shop/shop"}}); err != nil {
		t.Fatal(err)
	}
	if got := string(r.Snap.Objects[0].Object); !strings.Contains(got, `"paused":true`) || len(r.paused) != 1 {
		t.Errorf("it comes back as %s, and the journal would say %v", got, r.paused)
	}
}

// A newest snapshot that is older than the tried one is refused, unless the user names the snapshot.
func TestOlderThanSeen(t *testing.T) {
	s := &session.Session{Mgmt: &v1alpha1.ManagementCluster{Name: "spare"}}
	rest := &handover.Journal{
		Role:    handover.RoleStandby,
		Standby: &handover.Standby{Seen: &handover.Seen{Snapshot: "20260102T000000Z-abcdef"}},
	}
	older := &Restoration{session: s, Snap: &snapshot.Snapshot{ID: "20260101T000000Z-abcdef"}}
	for _, j := range []*handover.Journal{rest, {Role: handover.RoleTarget, Tries: true, Before: rest}} {
		a := &activation{Restoration: older, journal: j}
		if err := a.refuseOlder(); err == nil || !strings.Contains(err.Error(), rest.Standby.Seen.Snapshot) {
			t.Errorf("%s: %v", j.What(), err)
		}
		a.opts.Snapshot = older.Snap.ID
		if err := a.refuseOlder(); err != nil {
			t.Errorf("%s, named: %v", j.What(), err)
		}
	}
}
