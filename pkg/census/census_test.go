package census

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
)

// newRepo makes a fleet repo with these files, by their paths, and opens it.
func newRepo(t *testing.T, files map[string]string) *fleetrepo.Repo {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	repo, err := fleetrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

const (
	fleet = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  git: {url: "https://git.example.com/fleet.git"}
  managementClusters: [{name: first, path: clusters/first, host: {type: embedded}, providers: [{name: docker}]}]
`
	source = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m, url: "https://git.example.com/fleet.git", ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 10m, path: ./clusters/first, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
`
	cluster = `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: written, namespace: team}
`
)

// The clusters that are written as manifests are in the list, and a broken file beside them is not forgotten.
func TestClusters(t *testing.T) {
	repo := newRepo(t, map[string]string{
		"fleet.yaml": fleet, "clusters/first/flux-system.yaml": source, "clusters/first/written.yaml": "---\n" + cluster,
	})
	all, findings, err := Clusters(t.Context(), repo)
	if err != nil || len(findings) > 0 {
		t.Fatal(findings, err)
	}
	if got, want := fmt.Sprintf("%+v", all), fmt.Sprintf("%+v", []fleetrepo.Cluster{{
		Name: "written", Namespace: "team", ManagementCluster: "first", Manifests: true, File: "clusters/first/written.yaml", Line: 2,
	}}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	repo = newRepo(t, map[string]string{
		"fleet.yaml": fleet, "clusters/first/flux-system.yaml": source, "clusters/first/written.yaml": cluster + "spec: [\n",
	})
	if all, findings, err = Clusters(t.Context(), repo); err != nil || len(all) > 0 || len(findings) == 0 {
		t.Errorf("a broken file: %v, %v, %v", all, findings, err)
	}
}
