package fleetrepo

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
)

const clusterTemplate = `apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata:
  name: ${CLUSTER_NAME}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: ${CLUSTER_NAME}
data:
  region: ${REGION}
  password: ${ADMIN_PASSWORD}
`

func emptyFleet(t *testing.T) *Repo {
	t.Helper()
	dir := t.TempDir()
	const fleet = "apiVersion: fleetctl.dev/v1alpha1\nkind: Fleet\nmetadata:\n  name: x\nspec:\n  managementClusters:\n  - name: m\n    " +
		"providers:\n    - name: docker\n"
	if err := os.WriteFile(filepath.Join(dir, v1alpha1.FileName), []byte(fleet), 0o600); err != nil {
		t.Fatal(err)
	}
	return reopen(t, dir)
}

// Files in the folder of a new chart stay as they are, of any kind. The folder may already hold the very same chart.
func TestAddChartOverwritesNothing(t *testing.T) {
	for _, c := range []struct {
		name  string
		place func(dir string) error
		says  string // "" where the chart is written
	}{
		{"nothing", func(string) error { return nil }, ""},
		{"an empty folder", func(dir string) error { return os.MkdirAll(filepath.Join(dir, "templates"), 0o700) }, ""},
		{"values without Chart.yaml", writes("values.yaml", "by: hand\n"), "charts/own/values.yaml exists already"},
		{"a file that the chart has not", writes("templates/notes.txt", "by hand"), "charts/own/templates/notes.txt exists already"},
		{"an empty file", writes(".gitkeep", ""), "charts/own/.gitkeep exists already"},
		{"another chart", writes("Chart.yaml", "name: own\n"), "there is a chart own already, and it is another one"},
		{"a link", func(dir string) error {
			return firstOf(os.MkdirAll(dir, 0o700), func() error { return os.Symlink("../../fleet.yaml", filepath.Join(dir, "values.yaml")) })
		}, "charts/own/values.yaml exists already"},
		{
			"a folder in the place of a file", func(dir string) error { return os.MkdirAll(filepath.Join(dir, "values.yaml"), 0o700) },
			"charts/own/values.yaml exists already",
		},
		{"a file in the place of the folder", func(dir string) error {
			return firstOf(os.MkdirAll(filepath.Dir(dir), 0o700), func() error { return os.WriteFile(dir, []byte("x"), 0o600) })
		}, "charts/own exists already"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := emptyFleet(t)
			if err := c.place(filepath.Join(r.Dir, "charts", "own")); err != nil {
				t.Fatal(err)
			}
			e, err := r.AddChart("own", "template.yaml", []byte(clusterTemplate))
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Fatalf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Changes.Apply(r.Dir); err != nil {
				t.Fatal(err)
			}
			if _, err := r.AddChart("own", "template.yaml", []byte(clusterTemplate)); err != nil {
				t.Errorf("the very chart is there: %v", err)
			}
			// a part of it is what an interrupted write leaves
			if err := os.Remove(filepath.Join(r.Dir, "charts", "own", "Chart.yaml")); err != nil {
				t.Fatal(err)
			}
			if _, err := r.AddChart("own", "template.yaml", []byte(clusterTemplate)); err != nil {
				t.Errorf("a part of the very chart is there: %v", err)
			}
		})
	}
}

// writes is a file in a folder.
func writes(name, content string) func(dir string) error {
	return func(dir string) error {
		file := filepath.Join(dir, filepath.FromSlash(name))
		return firstOf(os.MkdirAll(filepath.Dir(file), 0o700), func() error { return os.WriteFile(file, []byte(content), 0o600) })
	}
}

func firstOf(err error, next func() error) error {
	if err != nil {
		return err
	}
	return next()
}

// The suggested commands write no credential to Git, and the notes say that a credential must not be there.
func TestAddChartWithCredential(t *testing.T) {
	e, err := emptyFleet(t).AddChart("own", "template.yaml", []byte(clusterTemplate))
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(e.Notes, "\n")
	if !strings.Contains(notes, "--set region=") || strings.Contains(notes, "--set adminPassword") {
		t.Error(notes)
	}
	if !slices.ContainsFunc(e.Notes, func(n string) bool {
		return strings.Contains(n, "adminPassword") && strings.Contains(n, "must not be put in Git in clear")
	}) {
		t.Error(notes)
	}
}
