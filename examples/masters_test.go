package examples_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
)

// The README of master-of-masters shows how eu gets its own repository. With the README's lines in fleet.yaml, that repository declares
// shop and has its own remote.
func TestTwoRepositories(t *testing.T) {
	readme, err := os.ReadFile("master-of-masters/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, lines, found := strings.Cut(string(readme), "```yaml\n")
	lines, _, closed := strings.Cut(lines, "```")
	if !found || !closed || !strings.Contains(lines, "repository:") {
		t.Fatal("the README has no lines for a repository of its own")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("master-of-masters")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "fleet.yaml")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	eu := "  - name: eu\n    parent: root\n    cloud: eu\n"
	if !strings.HasPrefix(lines, eu) || strings.Count(string(content), eu) != 1 {
		t.Fatalf("the README's lines are not those of eu in fleet.yaml:\n%s", lines)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(content), eu, lines, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	masters, err := fleetrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	files, err := masters.OwnRepo("eu", func(_ string, content []byte) ([]byte, error) { return content, nil })
	if err != nil {
		t.Fatal(err)
	}
	own := t.TempDir()
	for _, f := range files {
		name := filepath.Join(own, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	repo, err := fleetrepo.Open(own)
	if err != nil {
		t.Fatal(err)
	}
	if url := repo.Fleet.Spec.Git.URL; url != "https://git.example.com/platform/eu.git" {
		t.Errorf("it follows %s", url)
	}
	if m := repo.Fleet.Spec.ManagementClusters; len(m) != 1 || m[0].Name != "eu" {
		t.Errorf("it declares the management clusters %+v", m)
	}
	if _, err := os.Stat(filepath.Join(own, "providers/eu/v1/clusters/prod/shop/cluster.yaml")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(own, "providers/root")); err == nil {
		t.Error("it has a folder of root's")
	}
}
