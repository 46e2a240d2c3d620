package validate

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/validate/schema"
)

var layoutOfTests = layout.Layout{Cloud: "docker", Generation: "v1"}

// fleet is the files of a valid fleet repo, by their paths.
func fleet(t testing.TB) map[string]string {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/fleet.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	scaffolded, err := scaffold.Repo(scaffold.RepoOptions{
		Fleet: "acme", FleetYAML: []byte("kind: Fleet"), ManagementCluster: "mgmt", Layout: layoutOfTests, Charts: []string{"in-memory"},
		KubernetesVersion: "v1.36.3",
		Environments:      []scaffold.Environment{{Name: "staging"}, {Name: "production", Source: "release"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range scaffolded {
		files[f.Path] = string(f.Content)
	}
	for _, f := range archive.Files {
		files[f.Name] = string(f.Data)
	}
	addCluster(t, files, "staging", "one", nil)
	addCluster(t, files, "production", "two", map[string]any{"pools": []any{map[string]any{"name": "general", "replicas": 3}}})
	return files
}

// addCluster declares a cluster with the values that it needs, and those given.
func addCluster(t testing.TB, files map[string]string, environment, name string, values map[string]any) {
	t.Helper()
	all := map[string]any{"kubernetesVersion": "v1.36.3"}
	maps.Copy(all, values)
	made, err := scaffold.ClusterFiles(scaffold.ClusterOptions{
		Name: name, Layout: layoutOfTests, Environment: environment,
		Flavour: "in-memory", Values: all,
	})
	if err != nil {
		t.Fatal(err)
	}
	chart, err := scaffold.EnvironmentChart(layoutOfTests, environment, "in-memory")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(made, chart) {
		files[f.Path] = string(f.Content)
	}
}

// write puts files into a new folder.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		folder := strings.HasSuffix(name, "/") // with nothing in it
		name = filepath.Join(dir, filepath.FromSlash(name))
		if folder {
			name = filepath.Join(name, "x")
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if folder {
			continue
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// knownKinds are the kinds of crdFolders. They are compiled once.
func knownKinds(t testing.TB) *schema.Set {
	t.Helper()
	s := &schemas{Set: schema.NewSet()}
	for _, dir := range crdFolders(t) {
		if err := s.addFolder(dir); err != nil {
			t.Fatal(err)
		}
	}
	return s.Set
}

// crdFolders are the folders with the CRDs of the tests' fleets: Cluster API's come from its module.
func crdFolders(t testing.TB) []string {
	t.Helper()
	out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "go", "list", "-m", "-f", "{{.Dir}}",
		"sigs.k8s.io/cluster-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	folders := []string{"testdata/crds", "schema/testdata/widgets.yaml"}
	for _, dir := range []string{"core", "bootstrap/kubeadm", "controlplane/kubeadm"} {
		folders = append(folders, filepath.Join(strings.TrimSpace(string(out)), filepath.FromSlash(dir), "config", "crd", "bases"))
	}
	return folders
}

// validate runs all rules over files.
func validate(t testing.TB, files map[string]string, known *schema.Set) *Result {
	t.Helper()
	result, err := Run(t.Context(), Options{Dir: write(t, files), known: known, Offline: true, CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestValidFleet(t *testing.T) {
	result := validate(t, fleet(t), knownKinds(t))
	report(t, result.Findings)
	if result.Clusters != 2 || result.Objects < 20 {
		t.Errorf("%d clusters and %d objects", result.Clusters, result.Objects)
	}
}

// report fails the test for each finding.
func report(t testing.TB, findings diag.Findings) {
	t.Helper()
	for _, f := range findings {
		t.Errorf("%s: %s [%s] (%s)", f.Severity, f, f.Rule, f.Hint)
	}
}
