package change

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// legacyChart is the chart docker as an older fleetctl would have brought it, when its schema took any value.
func legacyChart(t *testing.T) []manifest.File {
	t.Helper()
	files, err := scaffold.ChartFiles("docker")
	if err != nil {
		t.Fatal(err)
	}
	var older []manifest.File
	for _, f := range files {
		if path.Base(f.Path) == "values.schema.json" {
			f.Content = bytes.Replace(f.Content, []byte(`"additionalProperties": false`), []byte(`"additionalProperties": true`), 1)
		}
		older = append(older, f)
	}
	return older
}

// legacyFleet has two clusters of the older chart. One of them uses a value that the current chart lacks.
func legacyFleet(t *testing.T, older []manifest.File) string {
	t.Helper()
	dir := t.TempDir()
	set := manifest.ChangeSet{}
	set.Write(older...)
	set.Write(manifest.File{Path: v1alpha1.FileName, Content: []byte("apiVersion: fleetctl.dev/v1alpha1\nkind: Fleet\nmetadata: {name: x}\n" +
		"spec:\n  environments: [{name: dev}]\n" +
		"  managementClusters: [{name: m, kubernetesVersion: v1.36.3, providers: [{name: docker}]}]\n")})
	lock, err := v1alpha1.MarshalLock(
		&v1alpha1.Lock{Charts: []v1alpha1.LockedChart{{Name: "docker", Fleetctl: "v0.0.1", SHA256: scaffold.Digest(older)}}})
	if err != nil {
		t.Fatal(err)
	}
	set.Write(manifest.File{Path: v1alpha1.LockFileName, Content: lock})
	layout := layout.Layout{Cloud: "docker", Generation: "v1"}
	chart, err := scaffold.EnvironmentChart(layout, "dev", "docker")
	if err != nil {
		t.Fatal(err)
	}
	set.Write(chart)
	for name, extra := range map[string]map[string]any{"modern": {}, "old": {"legacy": true}} {
		values := map[string]any{"kubernetesVersion": "v1.36.3", "controlPlane": map[string]any{"replicas": 1}}
		maps.Copy(values, extra)
		files, err := scaffold.ClusterFiles(scaffold.ClusterOptions{
			Name: name, Layout: layout, Environment: "dev",
			Flavour: "docker", Values: values,
		})
		if err != nil {
			t.Fatal(err)
		}
		set.Write(files...)
	}
	if _, err := set.Apply(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// An updated chart names the clusters that it breaks: as a note for a reviewer, and as an error for a commit.
func TestUpdatedChartNamesBrokenClusters(t *testing.T) {
	older := legacyChart(t)
	dir := legacyFleet(t, older)
	update := Options{Dir: dir, Edit: func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
		return r.UpdateCharts(nil, fleetrepo.PreferNobody, func(string, string) ([]manifest.File, error) { return older, nil })
	}}
	const broken = "providers/docker/v1/clusters/dev/old/cluster.yaml"
	schema := filepath.Join(dir, "charts", "docker", "values.schema.json")
	before, err := os.ReadFile(schema)
	if err != nil {
		t.Fatal(err)
	}

	commit := update
	commit.Commit = true
	_, err = Make(t.Context(), commit)
	findings, ok := errors.AsType[diag.Findings](err)
	if !ok || len(findings) != 1 || findings[0].File != broken || !strings.Contains(findings[0].Hint, "without --commit and --push") {
		t.Errorf("got %v", err)
	}
	if now, err := os.ReadFile(schema); err != nil || !bytes.Equal(now, before) {
		t.Errorf("the chart has changed: %v", err)
	}

	result, err := Make(t.Context(), update)
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(result.Notes, "\n"); !strings.Contains(notes, "1 of 2 clusters of these charts break") ||
		!strings.Contains(notes, broken) || strings.Contains(notes, "modern") {
		t.Errorf("notes:\n%s", notes)
	}
}

// Where all clusters are well, that is said; a cluster that was broken before is not the update's fault.
func TestUpdatedChartKeepsClusters(t *testing.T) {
	older := legacyChart(t)
	dir := legacyFleet(t, older)
	bad := filepath.Join(dir, "providers", "docker", "v1", "clusters", "dev", "old", "cluster.yaml")
	content, err := os.ReadFile(bad)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bad, bytes.Replace(content, []byte("replicas: 1"), []byte("replicas: none"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	result, err := Make(t.Context(), Options{Dir: dir, DryRun: true, Edit: func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
		return r.UpdateCharts(nil, fleetrepo.PreferNobody, func(string, string) ([]manifest.File, error) { return older, nil })
	}})
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(result.Notes, "\n"); !strings.Contains(notes, "1 rendered before, and none of them breaks") {
		t.Errorf("notes:\n%s", notes)
	}
}
