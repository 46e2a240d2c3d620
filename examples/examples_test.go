// Package examples_test checks that a copy of each example is a fleet repo that works.
package examples_test

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// release has the fields of a cluster.yaml that the tests check.
type release struct {
	Kind     string
	Metadata struct {
		Name, Namespace string
		Annotations     map[string]string
	}
	Spec struct {
		ReleaseName string
		ChartRef    struct{ Kind, Name, Namespace string }
		Values      map[string]any
	}
}

func TestExamples(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	folders, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		t.Run(folder.Name(), func(t *testing.T) {
			if !bytes.Contains(readme, []byte("]("+folder.Name()+")")) {
				t.Error("README.md does not list it")
			}
			fleet := readFleet(t, path.Join(folder.Name(), v1alpha1.FileName))
			clusters := checkClusters(t, folder.Name(), fleet)
			if clusters == 0 {
				t.Error("it declares no cluster")
			}
		})
	}
}

func readFleet(t *testing.T, name string) *v1alpha1.Fleet {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	fleet, err := v1alpha1.Decode(name, content)
	if err != nil {
		t.Fatal(err)
	}
	v1alpha1.SetDefaults(fleet, v1alpha1.Defaults{FluxVersion: "v2.0.0", CAPIVersion: "v1.0.0"})
	if err := v1alpha1.Validate(fleet).Err(); err != nil {
		t.Fatal(err)
	}
	return fleet
}

// checkClusters checks every cluster.yaml of the example and returns how many there are.
func checkClusters(t *testing.T, example string, fleet *v1alpha1.Fleet) int {
	t.Helper()
	found := 0
	err := fs.WalkDir(os.DirFS(example), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Base(name) != "cluster.yaml" {
			return err
		}
		found++
		cluster := path.Base(path.Dir(name))
		if !slices.Contains(clusterDirs(fleet, cluster), path.Dir(name)) {
			t.Errorf("%s is in no environment of a management cluster of fleet.yaml", name)
		}
		content, err := os.ReadFile(path.Join(example, name))
		if err != nil {
			return err
		}
		checkRelease(t, example, name, content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// clusterDirs returns all folders in which a cluster of that name could be.
func clusterDirs(fleet *v1alpha1.Fleet, cluster string) []string {
	var dirs []string
	for i := range fleet.Spec.ManagementClusters {
		for _, l := range fleet.Layouts(&fleet.Spec.ManagementClusters[i]) {
			for _, e := range fleet.Spec.Environments {
				dirs = append(dirs, l.Cluster(e.Name, cluster))
			}
		}
	}
	return dirs
}

// checkRelease checks that a cluster.yaml fits its folder, names the chart of its environment, and protects the cluster.
func checkRelease(t *testing.T, example, name string, content []byte) {
	t.Helper()
	cluster, environment := path.Base(path.Dir(name)), path.Base(path.Dir(path.Dir(name)))
	_, document, _ := bytes.Cut(content, []byte("\n---\n"))
	var r release
	if err := yaml.Unmarshal(document, &r); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	flavours, err := scaffold.Flavours()
	if err != nil {
		t.Fatal(err)
	}
	flavour, ok := layout.FlavourOf(environment, r.Spec.ChartRef.Name)
	if !ok || !slices.Contains(flavours, flavour) || r.Spec.ChartRef.Kind != "HelmChart" || r.Spec.ChartRef.Namespace != "flux-system" {
		t.Errorf("%s: there is no chart %+v", name, r.Spec.ChartRef)
	}
	parts := strings.Split(name, "/") // providers/<cloud>/<generation>/…
	chart, err := scaffold.EnvironmentChart(layout.Layout{Cloud: parts[1], Generation: parts[2]}, environment, flavour)
	if err != nil {
		t.Fatal(err)
	}
	if there, err := os.ReadFile(path.Join(example, chart.Path)); err != nil || !bytes.Equal(there, chart.Content) {
		t.Errorf("%s is not as `fleetctl cluster add` writes it: %v", chart.Path, err)
	}
	if r.Kind != "HelmRelease" || r.Metadata.Name != cluster || r.Metadata.Namespace != cluster || r.Spec.ReleaseName != cluster {
		t.Errorf("%s: %s %s/%s does not fit its folder", name, r.Kind, r.Metadata.Namespace, r.Metadata.Name)
	}
	if r.Metadata.Annotations["kustomize.toolkit.fluxcd.io/prune"] != "disabled" {
		t.Errorf("%s: the cluster has no prune protection", name)
	}
	render(t, name, flavour, r.Spec.Values)
}
