package census

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
)

// A kustomization.yaml can name a file of JSON. The clusters in it are clusters of the fleet.
func TestClusterInJSON(t *testing.T) {
	dir := t.TempDir()
	repo := fleetrepo.New(dir, &v1alpha1.Fleet{})
	for _, step := range []struct {
		name, content string
		want          bool
	}{
		{"package.json", `{"kind": "Cluster", "name": "of no API"}`, false},
		{"edge.json", `{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "edge"}}`, true},
	} {
		if err := os.WriteFile(filepath.Join(dir, step.name), []byte(step.content), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := HasManifests(repo); got != step.want {
			t.Errorf("with %s: %t, want %t", step.name, got, step.want)
		}
	}
}
