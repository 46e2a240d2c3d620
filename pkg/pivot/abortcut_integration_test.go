//go:build integration

package pivot

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// A pivot that was killed before its first journal, and an abort that was killed after it had removed the journals, leave the kubeconfig of
// the target at the source, and a note beside the snapshots that the target has the work. The next abort removes both, also from a machine
// that knows nothing of the first one.
func TestAbortGoesOnWithoutAJournal(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	key, err := secret.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	keys, place := secret.Keys{key}, t.TempDir()
	ageKeys := filepath.Join(t.TempDir(), "agekey")
	if err := os.WriteFile(ageKeys, keys.File(), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := e.Take(ctx, t, func(o *session.Options) { o.AgeKeyFile = ageKeys })
	if err != nil {
		t.Fatal(err)
	}
	s.Fleet.Spec.Snapshots.To, s.Opts.AgeKeyFile = place, ageKeys
	folder, err := snapshot.NewFolder(place, "mgmt")
	if err != nil {
		t.Fatal(err)
	}
	_, target := kubetest.Start(t)
	way := &handedTarget{Name: "platform/platform", Kubeconfig: target}
	begin := func() {
		t.Helper()
		p := NewMove(converge.NewRun(s), "platform")
		if err := p.keepTarget(ctx, e.Client, way); err != nil {
			t.Fatal(err)
		}
		if err := noteHandedOver(ctx, folder, note(s, way.Name, ""), keys, true); err != nil {
			t.Fatal(err)
		}
	}
	abort := func(ctx context.Context) (*MoveResult, error) {
		p := NewMove(converge.NewRun(s), "")
		p.source = e.Client
		return p.aside(ctx, MoveOptions{Abort: true})
	}
	settled := func() {
		t.Helper()
		newest, err := snapshot.Find(ctx, folder, "", keys)
		if err != nil || newest.HandedOver != "" {
			t.Errorf("the newest in the place of the snapshots: %+v, %v", newest, err)
		}
		if _, err := e.Client.SecretValue(ctx, targetSecret, "target"); !kube.IsAbsent(err) {
			t.Errorf("the source still has the kubeconfig of the target: %v", err)
		}
		if kept, err := readKept(s.Cluster); err != nil || kept != nil {
			t.Errorf("this machine still has it: %+v, %v", kept, err)
		}
		if result, err := abort(ctx); err != nil || result.Outcome != "nothing-to-do" {
			t.Errorf("once more: %+v, %v", result, err)
		}
	}
	for story, from := range map[string]func(){
		"on the same machine": func() {}, "on another machine": func() { s.Cluster = state.Store{Dir: t.TempDir()}.Cluster("mgmt") },
		"with a damaged file": func() {
			if err := s.Cluster.Write(targetFile, []byte(`{"name":"platform/pl`)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(story, func(t *testing.T) {
			begin()
			from()
			result, err := abort(ctx)
			if err != nil || result.Outcome != "undone" || result.Report.Target != way.Name {
				t.Fatalf("%+v, %v", result, err)
			}
			settled()
		})
	}
}
