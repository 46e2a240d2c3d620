package fleetrepo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

const withStandbys = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  git:
    url: https://git.example.com/acme.git
  notifications:
  - name: ops
    type: slack
    channel: ops
    secret: ops
    managementClusters: [main] # who
  managementClusters:
  # the one that people know
  - name: main # its name
    host:
      type: existing
      existing: {context: here}
    providers:
    - name: aws # a comment that stays
      version: v2.13.0
  - name: eu
    parent: main
    cloud: eu
  standbys:
  - name: spare
    of: main
    host:
      type: kind
      kind:
        image: kindest/node:v1.36.3
        extraMounts:
        - hostPath: /srv
          containerPath: /srv
  - name: second
    of: main
    host: {type: embedded}
`

func fleetOf(t *testing.T, content string) *Repo {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, v1alpha1.FileName), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func contentOf(t *testing.T, e *Edit) string {
	t.Helper()
	for _, f := range e.Changes.Files() {
		if f.Path == v1alpha1.FileName {
			return string(f.Content)
		}
	}
	t.Fatal("fleet.yaml does not change")
	return ""
}

// A standby that has taken over replaces the other management cluster in fleet.yaml, with its own name and host. All other text stays.
func TestActivateStandby(t *testing.T) {
	r := fleetOf(t, withStandbys)
	e, err := r.ActivateStandby("spare", "main")
	if err != nil {
		t.Fatal(err)
	}
	content := contentOf(t, e)
	after := fleetOf(t, content)
	m, err := after.Fleet.ManagementCluster("spare")
	if err != nil {
		t.Fatal(err)
	}
	before, err := r.Fleet.ManagementCluster("main")
	if err != nil {
		t.Fatal(err)
	}
	if m.Host.Type != v1alpha1.HostKind || m.Host.Existing != nil || m.Host.Kind == nil || m.Host.Kind.Image != "kindest/node:v1.36.3" ||
		len(m.Host.Kind.ExtraMounts) != 1 || m.Host.Kind.ExtraMounts[0].HostPath != "/srv" {
		t.Errorf("its host is %+v", m.Host)
	}
	if m.Dir() != before.Dir() || len(m.Providers) != 1 || m.Providers[0].Version != "v2.13.0" {
		t.Errorf("it is %+v", m)
	}
	eu, err := after.Fleet.ManagementCluster("eu")
	if err != nil || eu.Parent != "spare" {
		t.Errorf("what it makes is %+v, %v", eu, err)
	}
	if s := after.Fleet.Spec.Standbys; len(s) != 1 || s[0].Name != "second" || s[0].Of != "spare" {
		t.Errorf("standbys: %+v", s)
	}
	if n := after.Fleet.Spec.Notifications[0].ManagementClusters; len(n) != 1 || n[0] != "spare" {
		t.Errorf("who is told: %v", n)
	}
	for _, kept := range []string{"# the one that people know", "# its name", "# a comment that stays"} {
		if !strings.Contains(content, kept) {
			t.Errorf("lost: %s", kept)
		}
	}
	if again, err := after.ActivateStandby("spare", "main"); err != nil || len(again.Changes.Files()) > 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
	for _, wrong := range [][2]string{{"eu", "main"}, {"spare", "nobody"}} {
		if _, err := r.ActivateStandby(wrong[0], wrong[1]); err == nil {
			t.Errorf("%v: no error", wrong)
		}
	}
}

func TestAddAndRemoveStandby(t *testing.T) {
	r := fleetOf(t, strings.Split(withStandbys, "  standbys:")[0])
	e, err := r.AddStandby(v1alpha1.Standby{Name: "spare", Of: "main", Host: v1alpha1.Host{Type: v1alpha1.HostEmbedded}})
	if err != nil {
		t.Fatal(err)
	}
	with := fleetOf(t, contentOf(t, e))
	s := with.Fleet.Standby("spare")
	if s == nil || s.Of != "main" {
		t.Fatalf("it is %+v", s)
	}
	m, err := with.Fleet.StandbyCluster(s)
	if err != nil || m.Name != "spare" || m.Host.Type != v1alpha1.HostEmbedded || len(m.Providers) != 1 || m.Dir() != "providers/aws/v1/mgmt" {
		t.Errorf("as a management cluster it is %+v, %v", m, err)
	}
	if all, err := with.Standbys(); err != nil || len(all) != 1 || all[0] != (Standby{Name: "spare", Of: "main", Host: "embedded"}) {
		t.Errorf("the list is %+v, %v", all, err)
	}
	for _, same := range []v1alpha1.Standby{
		{Name: "spare", Of: "main", Host: v1alpha1.Host{Type: v1alpha1.HostEmbedded}}, {Name: "spare", Of: "main"}, {Name: "spare"},
	} {
		if again, err := with.AddStandby(same); err != nil || !again.Changes.Empty() || again.AsWanted != "standby spare is there" {
			t.Errorf("%+v again: %+v, %v", same, again, err)
		}
	}
	for _, wrong := range []v1alpha1.Standby{
		{Name: "spare", Of: "eu"},
		{Name: "spare", Of: "main", Host: v1alpha1.Host{Type: v1alpha1.HostKind}},
		{Name: "spare", Host: v1alpha1.Host{Existing: &v1alpha1.ExistingHost{Context: "spare"}}},
		{Name: "main", Of: "eu"},
		{Name: "other", Of: "nobody"},
		{Name: "other"},
		{Name: "Not a name", Of: "main"},
		{Name: "other", Of: "main", Host: v1alpha1.Host{Type: v1alpha1.HostWorkload}},
		{Name: "other", Of: "main", Host: v1alpha1.Host{Type: v1alpha1.HostExisting}},
	} {
		if _, err := with.AddStandby(wrong); err == nil {
			t.Errorf("%+v: no error", wrong)
		}
	}
	if e, err = with.RemoveStandby("spare"); err != nil {
		t.Fatal(err)
	}
	if got := fleetOf(t, contentOf(t, e)); len(got.Fleet.Spec.Standbys) > 0 {
		t.Errorf("still there: %+v", got.Fleet.Spec.Standbys)
	}
	if _, err := with.RemoveStandby("nobody"); err == nil {
		t.Error("an unknown one: no error")
	}
}

// fleetctl cannot add to an empty list with an anchor. One error says so, with a hint.
func TestAddStandbyToWhatCannotBeEdited(t *testing.T) {
	r := fleetOf(t, strings.Split(withStandbys, "standbys:")[0]+"standbys: &all []\n")
	_, err := r.AddStandby(v1alpha1.Standby{Name: "third", Of: "main"})
	if err == nil || strings.Count(err.Error(), "change fleet.yaml") != 1 || diag.Hint(err) == "" {
		t.Errorf("got %v (%s)", err, diag.Hint(err))
	}
}
