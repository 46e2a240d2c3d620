package handover

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/capi"
)

// An abort asks the Clusters for claims only if the hand-over has come to the claims: the others do not have to answer. An abort that was
// cut off goes on as it began.
func TestAbortAsksOnlyWhereAClaimCanBe(t *testing.T) {
	for phase, asks := range map[Phase]bool{PhasePlanned: false, PhaseFenced: false, PhaseCopied: false, PhaseVerified: true} {
		var asked atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.WriteHeader(http.StatusForbidden)
		}))
		t.Cleanup(server.Close)
		at := sideAt(t, "target", server.URL)
		manager, err := capi.New(at.Client)
		if err != nil {
			t.Fatal(err)
		}
		j := &Journal{ID: "a", Role: RoleTarget, Phase: phase, Owners: map[string]string{"shop/shop": "", "pay/pay": ""}}
		for range 2 {
			j = j.aborting("new", "somebody")
			if j.Phase != PhaseAborting || j.Runner != "new" || j.By != "somebody" {
				t.Errorf("from %s: %+v", phase, j)
			}
			r := newRun(Options{Target: at})
			r.target = &side{Side: at, manager: manager, journal: j}
			asked.Store(0)
			r.takeBackClaims(t.Context())
			if (asked.Load() > 0) != asks || (len(r.warnings) > 0) != asks {
				t.Errorf("an abort in the phase %s sends %d requests for claims, and warns %q", phase, asked.Load(), r.warnings)
			}
		}
	}
}
