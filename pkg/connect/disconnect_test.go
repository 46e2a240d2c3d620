package connect

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// What `fleetctl connect` has written to the user's kubeconfig goes when it is forgotten, and nothing else goes.
func TestForgetTakesTheContextAlong(t *testing.T) {
	store, user := state.Store{Dir: t.TempDir()}, filepath.Join(t.TempDir(), "config")
	way := []byte("{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: 'https://10.0.0.1:6443'}}], current-context: a, " +
		"users: [{name: a, user: {}}], contexts: [{name: a, context: {cluster: a, user: a}}]}")
	for _, name := range []string{"eu", "us"} {
		if err := kube.MergeKubeconfig(t.Context(), user, management.ContextName(name), way); err != nil {
			t.Fatal(err)
		}
	}
	cluster := store.Cluster("eu")
	if err := cluster.Save(state.Record{Connected: true, HostType: "existing", MergedInto: user}); err != nil {
		t.Fatal(err)
	}
	target, err := management.Find(store, "eu", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := Disconnect(t.Context(), management.Deps{Report: progress.Discard}, target); err != nil {
		t.Fatal(err)
	}
	if got := kube.Contexts(user); len(got) != 1 || got[0] != management.ContextName("us") {
		t.Errorf("the user's kubeconfig has %q", got)
	}
	if _, err := os.Stat(cluster.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("this machine still has its folder: %v", err)
	}
	if err := Disconnect(t.Context(), management.Deps{Report: progress.Discard}, target); err == nil {
		t.Error("it was forgotten twice")
	}
}

// heard keeps the warnings.
type heard struct {
	progress.Reporter
	warnings []string
}

func (h *heard) Warn(text string) { h.warnings = append(h.warnings, text) }

// A kubeconfig of the user that is damaged keeps nobody from forgetting a management cluster.
func TestForgetsWithADamagedKubeconfig(t *testing.T) {
	store, user := state.Store{Dir: t.TempDir()}, filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(user, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster := store.Cluster("eu")
	if err := cluster.Save(state.Record{Connected: true, HostType: "existing", MergedInto: user}); err != nil {
		t.Fatal(err)
	}
	target, err := management.Find(store, "eu", "")
	if err != nil {
		t.Fatal(err)
	}
	h := &heard{}
	if err := Disconnect(t.Context(), management.Deps{Report: h}, target); err != nil {
		t.Fatal(err)
	}
	if len(h.warnings) != 1 || !strings.Contains(h.warnings[0], user) || !strings.Contains(h.warnings[0], management.ContextName("eu")) {
		t.Errorf("%q", h.warnings)
	}
	if _, err := os.Stat(cluster.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("this machine still has its folder: %v", err)
	}
}
