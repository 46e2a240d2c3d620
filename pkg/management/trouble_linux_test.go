package management

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gofrs/flock"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
	"github.com/fleetctl/fleetctl/pkg/state"
	"github.com/fleetctl/fleetctl/pkg/status"
)

// TestTroubleOfAHostIsToldWhereItsAPIServerIsSilent has this test as the supervisor and etcd of an embedded host whose API server has
// ended: nobody answers, and host list and status say why.
func TestTroubleOfAHostIsToldWhereItsAPIServerIsSilent(t *testing.T) {
	store := state.Store{Dir: t.TempDir()}
	cluster := store.Cluster("mgmt")
	if err := cluster.Save(state.Record{Name: "mgmt", Fleet: "mgmt", HostType: string(v1alpha1.HostEmbedded)}); err != nil {
		t.Fatal(err)
	}
	write := func(name string, content []byte) {
		t.Helper()
		path := cluster.Path(filepath.Join("embedded", name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("host.json", []byte(`{"name": "mgmt"}`))
	write("complete", nil)
	write("control-plane/admin.kubeconfig", []byte(`{apiVersion: v1, kind: Config, current-context: c,
 clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}], contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}`))
	write("control-plane/log/kube-apiserver.log", []byte("starting\nno luck today\n"))
	us, err := process.Find(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"etcd", "kube-controller-manager"} {
		raw, err := json.Marshal(process.Record{Name: program, Identity: us})
		if err != nil {
			t.Fatal(err)
		}
		write("processes/"+program+".json", raw)
	}
	lock := flock.New(cluster.Path(filepath.Join("embedded", "alive")))
	if held, err := lock.TryLock(); err != nil || !held {
		t.Fatal(held, err)
	}
	t.Cleanup(func() { _ = lock.Close() })

	const want = "kube-apiserver does not run; its log ends with: no luck today"
	list, err := ListHosts(t.Context(), Deps{Store: store})
	if err != nil || len(list.Hosts) != 1 || list.Hosts[0].State != "running" || list.Hosts[0].Trouble != want {
		t.Errorf("host list: %+v, %v", list, err)
	}
	target, err := Find(store, "mgmt", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	report := status.Collect(t.Context(), StatusSources(t.Context(), target))
	if report.Ready || len(report.Problems) < 2 || report.Problems[0].Reason != want ||
		!strings.Contains(report.Problems[0].Hint, "fleetctl host logs kube-apiserver") {
		t.Errorf("status: %+v", report.Problems)
	}
	var shown bytes.Buffer
	if err := status.Tree(&shown, report, status.Style{}); err != nil || !strings.Contains(shown.String(), want) {
		t.Errorf("status shows %v\n%s", err, shown.String())
	}
}
