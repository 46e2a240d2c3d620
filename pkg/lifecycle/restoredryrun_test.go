package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/pivot"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
)

// warned keeps the warnings.
type warned struct {
	progress.Reporter

	says []string
}

func (w *warned) Warn(text string) { w.says = append(w.says, text) }

// A dry run of restore shows the snapshot, and says what restore itself would refuse.
func TestDryRunOfRestore(t *testing.T) {
	key, err := secret.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		gone       bool
		handedOver string
		says       []string
	}{
		"it is gone":                  {gone: true},
		"nobody says that it is gone": {says: []string{"would refuse to restore this snapshot: ", "is gone", "--source-is-gone"}},
		"it was handed over":          {gone: true, handedOver: "second", says: []string{"would refuse to restore this snapshot: ", "second"}},
	} {
		t.Run(name, func(t *testing.T) {
			b, place := newRunner(t, secret.Keys{key}, "snapshots: {to: snapshots}, ")
			snap := &snapshot.Snapshot{
				FormatVersion: "1", ID: snapshot.NewID(time.Now()), Taken: time.Now(), By: "runner-1", Fleet: identity, FleetName: "acme",
				ManagementCluster: "mgmt", UID: "lost", Clusters: []string{"shop/shop"}, Available: []string{}, Providers: []string{},
				Counts: map[string]int{"Cluster": 1}, HandedOver: c.handedOver,
			}
			if err := snapshot.Put(t.Context(), place, snap, secret.Keys{key}); err != nil {
				t.Fatal(err)
			}
			heard, deps := &warned{Reporter: progress.Discard}, b.session.Deps
			deps.Report = heard
			result, err := pivot.Restore(t.Context(), deps, pivot.RestoreOptions{
				Options: session.Options{Dir: b.session.Opts.Dir}, DryRun: true, SourceIsGone: c.gone,
			})
			if err != nil || result.Snapshot.ID != snap.ID {
				t.Fatalf("%+v, %v", result, err)
			}
			said := strings.Join(heard.says, "\n")
			if c.says == nil && said != "" {
				t.Errorf("it warns: %s", said)
			}
			for _, want := range c.says {
				if !strings.Contains(said, want) {
					t.Errorf("%q lacks %q", said, want)
				}
			}
		})
	}
}
