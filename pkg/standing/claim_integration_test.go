//go:build integration

package standing_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// Of fleets that claim a cluster at the same time one wins, and all others are told which.
func TestOneClaimWins(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	first := standingtest.New(t)
	const racers = 6
	var sessions []*session.Session
	for range racers {
		s, err := session.Open(ctx, first.Deps, first.Beside(t).Options(t, "admin"))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		sessions = append(sessions, s)
	}
	errs := make([]error, racers)
	var group sync.WaitGroup
	for i, s := range sessions {
		group.Go(func() { errs[i] = standing.Claim(ctx, s, first.Client, following.View{}) })
	}
	group.Wait()
	there, err := ownership.ReadClaim(ctx, first.Client)
	if err != nil {
		t.Fatal(err)
	}
	won := 0
	for i, err := range errs {
		if err == nil {
			won++
			if there.Fleet != sessions[i].Identity() {
				t.Error("the one that was let through is not the one that the cluster knows")
			}
		} else if !errors.Is(err, ownership.ErrOtherFleet) {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d have won", won)
	}
}

// A Flux that follows something else is left alone: what it follows, and what would be deleted, is said.
func TestFluxThatFollowsSomethingElse(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	e.FollowSomething(ctx, t, "", "", "")
	if _, err := e.Take(ctx, t); err != nil {
		t.Fatalf("a Flux that follows nothing: %v", err)
	}
	e.Unclaim(ctx, t)
	const path = "providers/docker/v1/mgmt"
	for name, tc := range map[string]struct {
		url, branch, path, other string
		allowed                  bool
	}{
		"what init wants":              {e.Git.URL, "main", path, "", true},
		"the same, without its ending": {strings.TrimSuffix(e.Git.URL, ".git"), "main", path, "", true},
		"another repository":           {"https://git.example.com/theirs.git", "main", path, "", false},
		"another branch":               {e.Git.URL, "production", path, "", false},
		"another path":                 {e.Git.URL, "main", "clusters/prod", "", false},
		"the folder above":             {e.Git.URL, "main", "providers/docker/v1", "", false},
		"the top of the repository":    {e.Git.URL, "main", "", "", false},
		"a sync of another tool beside it": {
			"", "", "",
			"{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: platform, namespace: flux-system}, spec: {path: " +
				"./, prune: true, sourceRef: {kind: OCIRepository, name: platform}}}", false,
		},
		"a FluxInstance of the operator": {
			"", "", "",
			"{apiVersion: fluxcd.controlplane.io/v1, kind: FluxInstance, metadata: {name: flux, namespace: flux-system}, spec: {}}", false,
		},
		"an address that a folder could be": {"http://10.0.0.1:4000/fleet.git", "main", path, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.other != "" {
				e.Apply(ctx, t, tc.other)
			}
			e.FollowSomething(ctx, t, tc.url, tc.branch, tc.path)
			_, err := e.Take(ctx, t)
			switch {
			case tc.allowed && err != nil:
				t.Errorf("refused: %v", err)
			case !tc.allowed && (err == nil || diag.Hint(err) == ""):
				t.Errorf("got %v", err)
			case !tc.allowed && tc.url != "" && (!strings.Contains(err.Error(), tc.url) ||
				!strings.Contains(err.Error(), "ConfigMap default/child") || !strings.Contains(diag.Hint(err), "--take-over-flux")):
				t.Errorf("got %v (%s)", err, diag.Hint(err))
			}
			if there, err := ownership.ReadClaim(ctx, e.Client); err != nil || (there != nil) != tc.allowed {
				t.Errorf("claimed: %v, %v", there, err)
			}
			e.Unclaim(ctx, t)
			e.ForgetFlux(ctx, t)
		})
	}
}
