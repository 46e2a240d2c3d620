package repofiles

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// Where nobody chooses a version of Kubernetes, the README of a new fleet repo still has one that its reader can use.
func TestExampleVersionOfADryRun(t *testing.T) {
	c := &Content{Session: &session.Session{Mgmt: &v1alpha1.ManagementCluster{}}}
	if v, err := c.exampleVersion(t.Context()); err != nil || !regexp.MustCompile(`^v1\.\d+\.\d+$`).MatchString(v) {
		t.Errorf("version %q, %v", v, err)
	}
	c.Session.Mgmt.KubernetesVersion = "v1.30.0"
	if v, err := c.exampleVersion(t.Context()); err != nil || v != "v1.30.0" {
		t.Errorf("version %q, %v, want the one of fleet.yaml", v, err)
	}
}

// A management cluster that is made again has not ended: its note goes with the first commit.
func TestEndedNoMore(t *testing.T) {
	s := &session.Session{Mgmt: &v1alpha1.ManagementCluster{Name: "root", Providers: []v1alpha1.Provider{{Name: "docker"}}}}
	root := t.TempDir()
	if changes := endedNoMore(s, root); len(changes) > 0 {
		t.Errorf("of no note: %+v", changes)
	}
	note := s.Layout().Ended("root")
	file := filepath.Join(root, filepath.FromSlash(note))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if changes := endedNoMore(s, root); len(changes) != 1 || changes[0].Path != note || !changes[0].Delete {
		t.Errorf("%+v", changes)
	}
}
