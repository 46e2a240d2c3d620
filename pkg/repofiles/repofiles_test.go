package repofiles

import (
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
