//go:build integration

package following_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/gitserve"
	"github.com/fleetctl/fleetctl/pkg/repoaccess"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// A fleet repo that was served from its folder gets a remote. Flux changes over where that has the commit which it has applied, and nowhere
// else.
func TestRemoteHasTheHistoryOfTheFolder(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	// The commit that was served, and one on top of it.
	served := e.Git.Seed(t, "main", map[string]string{"a": "1"})
	head := e.Git.Seed(t, "main", map[string]string{"a": "2"})
	// What another folder has served, a commit that this remote has nowhere or on another branch.
	elsewhere := e.Git.Seed(t, "elsewhere", map[string]string{"b": "1"})
	for name, tc := range map[string]struct {
		applied string
		allowed bool
		shallow bool
	}{
		"the commit below":                                 {served, true, false},
		"the commit itself":                                {head, true, true},
		"nothing was applied yet":                          {"", true, true},
		"a commit of nowhere":                              {"1111111111111111111111111111111111111111", false, false},
		"a commit of another branch":                       {elsewhere, false, false},
		"the commit below, in a clone of the newest alone": {served, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := e.Options(t, "admin")
			s, err := session.Open(ctx, e.Deps, o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			clone := t.TempDir()
			repo, err := gitrepo.Clone(ctx, e.Git.URL, s.PushAuth(), "main", clone)
			if err != nil {
				t.Fatal(err)
			}
			if !tc.shallow {
				gittest.Git(t, clone, "fetch", "--quiet", "--unshallow", e.Git.Dir)
			}
			p := &following.Pushed{Session: s, Repo: repo, Revision: head, Access: &repoaccess.Access{
				Session: s, Endpoint: &repoaccess.Endpoint{URL: e.Git.URL, Display: e.Git.URL}, Home: e.Client,
			}}
			e.FollowSomething(ctx, t, "", "", "")
			old := (&url.URL{Scheme: "https", Host: "10.0.0.1:4000", Path: gitserve.RepoPath}).String()
			e.Follows(ctx, t, old, tc.applied)
			there := s.Claim()
			there.URL, there.Confirmed = "", true // as it was made when the fleet had no remote
			if err := there.Create(ctx, e.Client); err != nil {
				t.Fatal(err)
			}
			_, err = p.Follow(ctx, e.Client, nil, nil)
			switch {
			case tc.allowed && err != nil:
				t.Error(err)
			case !tc.allowed && tc.shallow:
				if err == nil || !strings.Contains(diag.Hint(err), "git fetch --unshallow") {
					t.Errorf("got %v (%s)", err, diag.Hint(err))
				}
			case !tc.allowed && (err == nil || !strings.Contains(err.Error(), "does not have the commit "+tc.applied[:8]) ||
				!strings.Contains(diag.Hint(err), "--take-over-flux")):
				t.Errorf("got %v (%s)", err, diag.Hint(err))
			}
			now, err := flux.NewSystem(e.Client).Following(ctx)
			want := old
			if tc.allowed {
				want = e.Git.URL
			}
			if err != nil || now.URL != want {
				t.Errorf("it follows %s, %v; want %s", now.URL, err, want)
			}
			e.Unclaim(ctx, t)
			e.ForgetFlux(ctx, t)
		})
	}
}
