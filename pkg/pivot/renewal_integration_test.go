//go:build integration

package pivot

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/repoaccess"
	"github.com/fleetctl/fleetctl/pkg/resolve"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// noting returns a commit of the fleet whose key, the only one, seals the notes beside its snapshots.
func noting(t *testing.T, e *standingtest.Cluster, s *session.Session) *following.Pushed {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(e.Dir, filepath.FromSlash(s.Mgmt.Dir())), 0o700); err != nil {
		t.Fatal(err)
	}
	key, err := secret.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return &following.Pushed{Session: s, Access: &repoaccess.Access{Session: s, Keys: secret.Keys{key}}}
}

// Before the commit, a pivot and an activation that hands over note again who has the work: somebody may have taken a snapshot between the
// first note and the journal. A pivot that goes on has this behind it, and writes nothing.
func TestNotesAreRenewedBeforeTheCommit(t *testing.T) {
	ctx, e, s := takenFleet(t)
	commit := noting(t, e, s)
	keys := commit.Access.Keys
	pivots := func(under *handover.Journal) func() handover.Options {
		return func() handover.Options {
			p := NewMove(converge.NewRun(s), "")
			p.Under = under
			way := &handedTarget{Name: "next", Kubeconfig: []byte("its kubeconfig")}
			return p.handOptions(e.Client, &Target{handedTarget: way, client: e.Client}, commit, func(string) {})
		}
	}
	for name, test := range map[string]struct {
		standbyOf string
		options   func() handover.Options
		want      string
	}{
		"a pivot":              {"", pivots(nil), "next"},
		"a pivot that goes on": {"", pivots(&handover.Journal{}), ""},
		"an activation that relieves": {"lost", func() handover.Options {
			a := &activation{Restoration: NewRestoration(converge.NewRun(s)), opts: ActivateOptions{Options: session.Options{}}}
			return a.takeOverOptions(e.Client, commit, &resolve.Manifests{}, nil)
		}, s.Mgmt.Name},
	} {
		s.Fleet.Spec.Snapshots.To, s.StandbyOf, s.Waiting = t.TempDir(), test.standbyOf, "u1"
		place, err := s.Place()
		if err != nil {
			t.Fatal(err)
		}
		taken := time.Now().Add(time.Hour) // the clock of the machine that took it is ahead
		between := &snapshot.Snapshot{ID: snapshot.NewID(taken), Taken: taken, Fleet: s.Identity(), ManagementCluster: s.DeclaredAs()}
		if err := snapshot.Put(ctx, place, between, keys); err != nil {
			t.Fatal(err)
		}
		if test.want == "next" {
			keepJournal(ctx, t, e.Client, `{"formatVersion":"1","id":"a","role":"source","phase":"copied"}`)
		}
		check := test.options().Check
		if err := check(ctx, e.Client); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		newest, err := snapshot.Find(ctx, place, "", keys)
		if err != nil || newest.HandedOver != test.want {
			t.Errorf("%s: the newest in the place is handed over to %q, %v; want %q", name, newest.HandedOver, err, test.want)
		}
		if test.want != "next" {
			continue
		}
		if raw, err := e.Client.SecretValue(ctx, targetSecret, "target"); err != nil || decodeKept(raw) == nil {
			t.Errorf("%s: an abort elsewhere has forgotten the target meanwhile, and the source has %q, %v", name, raw, err)
		}
	}
}
