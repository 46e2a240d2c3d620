//go:build integration

package standing_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// A claim that is killed before or after any of its writes leaves a cluster without an owner, or one that belongs to the fleet as a whole.
// The same command again finishes it, and another fleet gets the cluster only if the first one has not got it.
func TestClaimKilled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	open := func(dir *standingtest.Cluster) *session.Session {
		t.Helper()
		s, err := session.Open(ctx, e.Deps, dir.Options(t, "admin"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	ours, theirs := open(e), open(e.Beside(t))
	config, err := clientcmd.LoadFromFile(e.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.CurrentContext = "admin"
	admin, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	cut := kubetest.NewCut(t, admin)
	claim := func(n int, applied bool) (int, bool, error) {
		t.Helper()
		ctx, client := cut.Begin(ctx, t, n, applied)
		err := standing.Claim(ctx, ours, client, following.View{})
		writes, ended := cut.Writes()
		return writes, ended, err
	}
	writes, ended, err := claim(0, false)
	if err != nil || ended || writes < 2 {
		t.Fatalf("a claim takes %d writes: %t, %v", writes, ended, err)
	}
	for n := 1; n <= writes; n++ {
		for _, applied := range []bool{false, true} {
			for _, first := range []*session.Session{ours, theirs} {
				e.Unclaim(ctx, t)
				if _, ended, err := claim(n, applied); !ended || err == nil {
					t.Fatalf("killed at write %d: %t, %v", n, ended, err)
				}
				there, err := ownership.ReadClaim(ctx, e.Client)
				if err != nil || there != nil && there.Fleet != ours.Identity() {
					t.Fatalf("killed at write %d, applied %t: the claim is %+v, %v", n, applied, there, err)
				}
				got := there != nil
				err = standing.Claim(ctx, first, e.Client, following.View{})
				if refused := errors.Is(err, ownership.ErrOtherFleet); refused != (got && first == theirs) || err != nil && !refused {
					t.Errorf("killed at write %d, applied %t, got it %t: then %v", n, applied, got, err)
				}
				owner := ours
				if first == theirs && !got {
					owner = theirs
				}
				if there, err = ownership.ReadClaim(ctx, e.Client); err != nil || there == nil || there.Fleet != owner.Identity() {
					t.Errorf("killed at write %d, applied %t: in the end the claim is %+v, %v", n, applied, there, err)
				}
			}
		}
	}
}
