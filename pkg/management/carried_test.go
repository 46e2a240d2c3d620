package management

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/state"
)

func wayTo(name, server string) []byte {
	return fmt.Appendf(nil, "{apiVersion: v1, kind: Config, clusters: [{name: %[1]s, cluster: {server: '%[2]s'}}], current-context: %[1]s, "+
		"users: [{name: %[1]s, user: {token: t}}], contexts: [{name: %[1]s, context: {cluster: %[1]s, user: %[1]s}}]}\n", name, server)
}

// Once a workload cluster is deleted, this machine keeps no way to the management cluster that ran on it. It keeps every way that leads, or
// may lead, elsewhere.
func TestForgetCarried(t *testing.T) {
	const id, dead, alive = "11111111-2222-3333-4444-555555555555", "https://10.0.0.1:6443", "https://10.0.0.2:6443"
	for story, c := range map[string]struct {
		record    *state.Record
		connected string // the server of `fleetctl connect`
		deleted   string // the workload cluster; "eu" if empty
		left      string // a Cluster of this name that the parent still has
		moved     bool   // a kubeconfig beside the missing record leads elsewhere
		kept      bool
	}{
		"made by init":                      {record: &state.Record{FleetID: id, HostType: "workload"}},
		"a bootstrap that was killed":       {},
		"another Cluster of this name":      {record: &state.Record{FleetID: id, HostType: "workload"}, left: "eu", kept: true},
		"other Clusters":                    {record: &state.Record{FleetID: id, HostType: "workload"}, left: "eu2"},
		"a damaged record was removed":      {moved: true, kept: true},
		"a repository of its own":           {record: &state.Record{FleetID: "other", HostType: "workload"}, deleted: "us"},
		"learned from its parent":           {record: &state.Record{FleetID: id, HostType: "existing"}, connected: dead},
		"the user gave a way elsewhere":     {record: &state.Record{FleetID: id, HostType: "existing"}, connected: alive, kept: true},
		"another fleet's of this name":      {record: &state.Record{FleetID: "other", HostType: "workload"}, kept: true},
		"pivoted from here":                 {record: &state.Record{FleetID: id, HostType: "workload", PivotedTo: "eu/b"}, kept: true},
		"a host on this machine":            {record: &state.Record{FleetID: id, HostType: "kind"}, kept: true},
		"the cluster of another parent":     {record: &state.Record{FleetID: id, HostType: "workload"}, deleted: "far", kept: true},
		"a management cluster of no parent": {record: &state.Record{FleetID: id, HostType: "workload"}, deleted: "root", kept: true},
	} {
		t.Run(story, func(t *testing.T) {
			c.deleted = cmp.Or(c.deleted, "eu")
			repo, store := t.TempDir(), state.Store{Dir: t.TempDir()}
			if err := os.WriteFile(filepath.Join(repo, "fleet.yaml"), []byte(`apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  git: {url: "https://git.example.com/fleet.git"}
  environments: [{name: prod}]
  managementClusters:
  - {name: root, cloud: root, host: {type: embedded}, providers: [{name: docker}]}
  - {name: eu, parent: root, cloud: eu, providers: [{name: docker}]}
  - {name: far, parent: eu, cloud: far, providers: [{name: docker}]}
  - name: us
    parent: root
    cloud: us
    repository: {git: {url: "https://git.example.com/us.git"}, environments: [prod]}
    providers: [{name: docker}]
`), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(repo, "fleet.id"), []byte(id+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			user := filepath.Join(t.TempDir(), "config")
			way := wayTo(c.deleted, dead)
			if err := kube.MergeKubeconfig(t.Context(), user, ContextName(c.deleted), way); err != nil {
				t.Fatal(err)
			}
			there := store.Cluster(c.deleted)
			if err := there.Write(hosts.WorkloadKubeconfigFile, way); err != nil {
				t.Fatal(err)
			}
			if record := c.record; record != nil {
				record.MergedInto = user
				if c.connected != "" {
					record.Connected, record.KubeconfigSource, record.Context = true, there.Path("connected.kubeconfig"), c.deleted
					if err := there.Write("connected.kubeconfig", wayTo(c.deleted, c.connected)); err != nil {
						t.Fatal(err)
					}
				}
				if err := there.Save(*record); err != nil {
					t.Fatal(err)
				}
			}
			if c.moved {
				if err := there.Write(KubeconfigFile, wayTo(c.deleted, alive)); err != nil {
					t.Fatal(err)
				}
			}
			root := store.Cluster("root")
			if err := root.Save(state.Record{FleetID: id, Fleet: "acme", HostType: "embedded", Repo: repo}); err != nil {
				t.Fatal(err)
			}
			for _, dir := range []string{repo, ""} { // in the fleet repo, and outside of it
				target, err := Find(store, "root", dir)
				if err != nil {
					t.Fatal(err)
				}
				var warned warnings
				target.ForgetCarried(t.Context(), Deps{Report: &warned}, c.deleted, func(context.Context) ([]capi.Cluster, error) {
					return []capi.Cluster{{Namespace: "platform", Name: c.left}}, nil
				})
				if len(warned.all) > 0 {
					t.Error(warned.all)
				}
				if _, err := os.Stat(there.Path(KubeconfigFile)); c.moved && err != nil {
					t.Error(err)
				}
				if _, err := os.Stat(there.Path(hosts.WorkloadKubeconfigFile)); c.moved && err == nil {
					t.Error("the way to the deleted cluster is kept")
				}
				if _, err := os.Stat(there.Dir); errors.Is(err, fs.ErrNotExist) == c.kept {
					t.Errorf("kept: %v", err)
				}
				if c.record == nil {
					continue
				}
				if contexts := kube.Contexts(user); (len(contexts) > 0) != c.kept {
					t.Errorf("the user's kubeconfig has %q", contexts)
				}
			}
			if _, err := root.Load(); err != nil {
				t.Errorf("the parent: %v", err)
			}
		})
	}
}

// warnings keeps the warnings of a command.
type warnings struct {
	progress.Reporter
	all []string
}

func (w *warnings) Warn(message string) { w.all = append(w.all, message) }

// The deletion of a cluster is done, whatever is wrong with what this machine remembers: a warning names the folder. A kubeconfig of the
// user that cannot be read keeps nothing of the folder.
func TestForgetCarriedWarns(t *testing.T) {
	for story, c := range map[string]struct {
		record, user string
		left         error
		warning      string
		kept         bool
	}{
		"a damaged record":           {record: `{"name": "e`, warning: "cluster.json", kept: true},
		"a damaged kubeconfig":       {record: `{"name": "eu", "hostType": "workload"}`, user: "{", warning: "remove the context"},
		"the parent does not answer": {record: `{"name": "eu"}`, left: errors.New("no answer"), warning: "no answer", kept: true},
	} {
		t.Run(story, func(t *testing.T) {
			store := state.Store{Dir: t.TempDir()}
			eu, user := store.Cluster("eu"), filepath.Join(t.TempDir(), "config")
			if err := os.WriteFile(user, []byte(c.user), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := eu.Write("cluster.json", []byte(c.record)); err != nil {
				t.Fatal(err)
			}
			if record, err := eu.Load(); err == nil {
				record.FleetID, record.MergedInto = "a", user
				if err := eu.Save(*record); err != nil {
					t.Fatal(err)
				}
			}
			if err := eu.Write(hosts.WorkloadKubeconfigFile, wayTo("eu", "https://10.0.0.1:6443")); err != nil {
				t.Fatal(err)
			}
			target := &Target{Name: "root", store: store, repo: &ownership.Repo{ID: "a", Parents: map[string]string{"eu": "root"}}}
			var warned warnings
			target.ForgetCarried(t.Context(), Deps{Report: &warned}, "eu", func(context.Context) ([]capi.Cluster, error) { return nil, c.left })
			if len(warned.all) != 1 || !strings.Contains(warned.all[0], c.warning) || strings.Contains(warned.all[0], eu.Dir) != c.kept {
				t.Errorf("%q", warned.all)
			}
			if _, err := os.Stat(eu.Dir); errors.Is(err, fs.ErrNotExist) == c.kept {
				t.Errorf("kept: %v", err)
			}
		})
	}
}
