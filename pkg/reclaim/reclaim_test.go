package reclaim

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// A fleet without a cloud that can be listed is told so at once: no management cluster is asked, and a silent one is not waited for.
func TestNoCloudToAsk(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var asked atomic.Int32
	go func() {
		for {
			if _, err := silent.Accept(); err != nil {
				return
			}
			asked.Add(1)
		}
	}()
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("kubeconfig", `apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "http://`+silent.Addr().String()+`"}}]
users: [{name: a, user: {}}]
`)
	write("fleet.yaml", `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  git: {url: "https://git.example.com/acme/fleet.git"}
  managementClusters:
  - {name: mgmt, host: {type: existing, existing: {kubeconfig: kubeconfig, context: a}}, providers: [{name: docker}]}
`)
	repo, err := fleetrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	store := state.Store{Dir: t.TempDir(), Given: &state.Given{Name: "mgmt", Kubeconfig: filepath.Join(dir, "kubeconfig")}}
	target, err := management.FindDeclared(store, "mgmt", dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Look(t.Context(), management.Deps{Store: store}, Options{
		Repo: repo, Dir: dir, Targets: []*management.Target{target}, Timeout: 3 * time.Second,
	})
	if err == nil || !strings.Contains(err.Error(), "neither the provider aws nor the provider vsphere") {
		t.Errorf("%v", err)
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the management cluster was asked %d times", n)
	}
}
