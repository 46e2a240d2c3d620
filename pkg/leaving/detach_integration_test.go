//go:build integration

package leaving_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/leaving"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// A detachment that another machine has begun keeps the objects on this machine, too, because that machine may be gone with its files, and
// it says which machines are left. The snapshot of an earlier cluster of the same name stays.
func TestDetachGoesOnWithoutTheMachineThatBegan(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	target := e.WithFlux(ctx, t)
	if err := e.Client.Create(ctx, standingtest.NewWorkload("team-a", "early")); err != nil {
		t.Fatal(err)
	}
	uid, err := handover.ClusterUID(ctx, e.Client)
	if err != nil {
		t.Fatal(err)
	}
	self := handover.Party{Name: target.Name, UID: uid}
	left := []handover.Remnant{{Kind: "Machine", Name: "team-a/early-1", ProviderID: "test://early-1"}}
	e.WriteJournal(ctx, t, handover.Journal{
		ID: "20260101t000000-abcdef", Role: handover.RoleSource, Phase: handover.PhasePlanned, Source: self, Owner: self,
		Select: []string{"team-a/early"}, Clusters: []string{"team-a/early"}, Detach: true, By: "runner on one", Left: left,
	})
	deps := e.Deps
	deps.Store = state.Store{Dir: t.TempDir()}
	dir := filepath.Join(deps.Store.Dir, "detached")
	file := filepath.Join(dir, target.Name+"-team-a-early.yaml")
	const earlier = "# of an earlier cluster of that name\n"
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(earlier), 0o600); err != nil {
		t.Fatal(err)
	}
	o := leaving.DetachOptions{Target: target, Cluster: "early", DryRun: true}
	r, err := leaving.Detach(ctx, deps, o)
	if err != nil || !slices.Equal(r.Left, left) {
		t.Fatalf("a dry run: %+v, %v", r, err)
	}
	o.DryRun = false
	if r, err = leaving.Detach(ctx, deps, o); err != nil {
		t.Fatal(err)
	}
	if r.Snapshot != file || !slices.Equal(r.Left, left) {
		t.Errorf("it says %+v", r)
	}
	if content, err := os.ReadFile(file); err != nil || !strings.Contains(string(content), "name: early") {
		t.Errorf("the snapshot is %q, %v", content, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, target.Name+"-team-a-early-*.yaml"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files: %q, %v", files, err)
	}
	if content, err := os.ReadFile(files[0]); err != nil || string(content) != earlier {
		t.Errorf("the earlier snapshot is %q, %v", content, err)
	}
}
