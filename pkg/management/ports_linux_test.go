package management

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// TestPortOfAnotherEmbeddedHostIsToldByItsName has this test as a program of the host that has the port: it listens, and the host's
// folder remembers it as hosts do.
func TestPortOfAnotherEmbeddedHostIsToldByItsName(t *testing.T) {
	store := state.Store{Dir: t.TempDir()}
	type machine struct {
		name    string
		cluster state.Cluster
		host    host.Host
	}
	newMachine := func(name string) *machine {
		s := &machine{name: name, cluster: store.Cluster(name)}
		if err := s.cluster.Save(state.Record{Name: name, Fleet: name, HostType: string(v1alpha1.HostEmbedded)}); err != nil {
			t.Fatal(err)
		}
		var err error
		if s.host, err = hosts.New(t.Context(), name, v1alpha1.Host{Type: v1alpha1.HostEmbedded}, s.cluster,
			hosts.ImageDir(t.TempDir())); err != nil {
			t.Fatal(err)
		}
		return s
	}
	one, two := newMachine("one"), newMachine("two")
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	check := func(s *machine, want preflight.Status, words ...string) {
		t.Helper()
		r := CheckPort(t.Context(), store, s.name, s.host, port)
		if r.Status != want {
			t.Errorf("%s: %+v, want %s", s.name, r, want)
		}
		for _, w := range words {
			if !strings.Contains(r.Summary+" "+r.Hint, w) {
				t.Errorf("%s: it does not say %q: %+v", s.name, w, r)
			}
		}
	}
	check(two, preflight.StatusFail, "docker provider", "address already in use") // somebody has it
	us, err := process.Find(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(process.Record{Name: "capd-system/capd-controller-manager", Identity: us})
	if err != nil {
		t.Fatal(err)
	}
	records := one.cluster.Path(filepath.Join("embedded", "processes"))
	if err := os.MkdirAll(records, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(records, "1.json"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	check(two, preflight.StatusFail, "capd-system/capd-controller-manager of the embedded management cluster one",
		"fleetctl host stop --management one")
	check(one, preflight.StatusOK, "has it already")
	restart := func() error {
		return (&Target{Name: "two", Cluster: two.cluster}).checkRestart(t.Context(), store, two.host, port)
	}
	if err := restart(); err != nil {
		t.Errorf("a host without the docker provider: %v", err)
	}
	if err := os.MkdirAll(two.cluster.Path(filepath.Join("embedded", "runner", "run", filepath.FromSlash(inMemoryManager))),
		0o700); err != nil {
		t.Fatal(err)
	}
	if err := restart(); err == nil || !strings.Contains(err.Error(), "cluster one") ||
		!strings.Contains(diag.Hint(err), "host stop --management one") {
		t.Errorf("a host with the docker provider: %v (%s)", err, diag.Hint(err))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	check(two, preflight.StatusOK)
}
