//go:build integration

package cmd

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// A management cluster that was taken for lost, and lives, says so after its standby has taken over: fleet.yaml does not have its name any
// more. It does not say so after it has handed its work over to the standby, nor in the fleet repo of others.
func TestStatusOfOneWhoseStandbyTookOver(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	isolate(t)
	e := standingtest.New(t)
	o := e.Options(t, "admin")
	const fleet, strangers = "7c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11", "0c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11"
	write := func(name, content string) {
		t.Helper()
		name = filepath.Join(e.Dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(fleetrepo.IdentityFile, string(fleetrepo.IdentityContent(fleet)))
	s, err := e.Take(ctx, t)
	if err != nil {
		t.Fatal(err)
	}
	e.FollowSomething(ctx, t, e.Git.URL, "main", s.Mgmt.Dir())
	uid, err := handover.ClusterUID(ctx, e.Client)
	if err != nil {
		t.Fatal(err)
	}
	named := func(uid string) {
		write(s.Layout().Identity(), "{uid: "+uid+", at: 2026-11-26T10:00:00Z, by: ci on other}\n")
	}
	named(uid)
	t.Chdir(o.Dir)
	status := func() string {
		t.Helper()
		var out bytes.Buffer
		Main(ctx, ui.Streams{In: strings.NewReader(""), Out: &out, Err: &out}, []string{
			"status", "--management", "mgmt", "--state-dir", e.Deps.Store.Dir, "--cache-dir", e.Deps.CacheDir,
		})
		if !strings.Contains(out.String(), "mgmt") {
			t.Fatalf("the status says\n%s", out.String())
		}
		return out.String()
	}
	const shout = "TWO OF ITS NAME"
	silent := func(story string) {
		t.Helper()
		if out := status(); strings.Contains(out, shout) || strings.Contains(out, "its place in the fleet") {
			t.Errorf("%s: it says\n%s", story, out)
		}
	}
	silent("as ever")
	for _, edit := range []func(*fleetrepo.Repo) (*fleetrepo.Edit, error){
		func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
			return r.AddStandby(v1alpha1.Standby{Name: "spare", Of: "mgmt", Host: v1alpha1.Host{Type: v1alpha1.HostEmbedded}})
		},
		func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) { return r.ActivateStandby("spare", "mgmt") },
	} {
		silent("a standby waits")
		repo, err := fleetrepo.Open(o.Dir)
		if err != nil {
			t.Fatal(err)
		}
		made, err := edit(repo)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range made.Changes.Files() {
			write(f.Path, string(f.Content))
		}
	}
	named("0b4e28ba-2fa1-11d2-883f-0016d3cca427")
	shouts := func(story string) {
		t.Helper()
		if out := status(); !strings.Contains(out, shout) || !strings.Contains(out, "ci on other") ||
			!strings.Contains(out, "fleetctl host stop --management mgmt") || !strings.Contains(out, "the same `fleetctl restore` again") {
			t.Errorf("%s: it says\n%s", story, out)
		}
	}
	shouts("the standby took over with a snapshot")
	before := handover.Journal{Role: handover.RoleTarget, Phase: handover.PhaseReleased, Source: handover.Party{Name: "kind", UID: "a-1"}}
	e.WriteJournal(ctx, t, before)
	shouts("it once took over from a bootstrap cluster")
	after := before
	after.Role, after.Source.UID, after.Target = handover.RoleSource, uid, handover.Party{Name: "spare", UID: "2"}
	e.WriteJournal(ctx, t, after)
	silent("it has handed its work over")
	e.WriteJournal(ctx, t, before)
	write(fleetrepo.IdentityFile, string(fleetrepo.IdentityContent(strangers)))
	silent("the repo of another fleet")
}
