package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/cmd"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// Who tries one example after the other on one machine does not take the management cluster of the last for that of the next.
func TestExamplesHaveManagementClustersOfTheirOwn(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "*", v1alpha1.FileName))
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %v", files, err)
	}
	seen := map[string]string{}
	for _, file := range files {
		fleet, err := v1alpha1.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		names := []string{"fleet " + fleet.Metadata.Name}
		for _, m := range fleet.Spec.ManagementClusters {
			names = append(names, "management cluster "+m.Name)
		}
		for _, name := range names {
			if other := seen[name]; other != "" {
				t.Errorf("%s is in %s and in %s", name, other, file)
			}
			seen[name] = file
		}
		if _, err := os.Lstat(filepath.Join(filepath.Dir(file), fleetrepo.IdentityFile)); err == nil {
			t.Errorf("%s has an identity: all copies of the example would be one fleet", filepath.Dir(file))
		}
	}
}

// adds finds the commands of a README that declare its clusters.
var adds = regexp.MustCompile(`(?m)^ *fleetctl (cluster add (\S+) --flavour \S+ --environment (\S+).*) --push$`)

// TestExamplesAreWhatTheirCommandsMake runs the commands with which an example's README says that its clusters were declared, in the repo
// as init leaves it: they find each cluster as it is, and give it its Flux.
func TestExamplesAreWhatTheirCommandsMake(t *testing.T) {
	for example, clouds := range map[string][]string{"two-clouds": {"aws", "azure"}, "app-delivery": {"docker"}} {
		t.Run(example, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("FLEETCTL_STATE_DIR", t.TempDir())
			if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "examples", example))); err != nil {
				t.Fatal(err)
			}
			readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			commands := adds.FindAllStringSubmatch(strings.ReplaceAll(string(readme), "\\\n", ""), -1)
			for _, command := range commands {
				for _, cloud := range clouds {
					initialised(t, dir, layout.Layout{Cloud: cloud, Generation: "v1"}, command[3])
				}
			}
			before, clusters := clusterFiles(t, dir), 0
			for _, command := range commands {
				var stderr bytes.Buffer
				args := append(strings.Fields(strings.ReplaceAll(command[1], "'", "")), "--repo", dir)
				if code := cmd.Main(t.Context(), ui.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &stderr}, args); code != 0 {
					t.Fatalf("fleetctl %s: exit %d\n%s", command[1], code, &stderr)
				}
			}
			for path, content := range clusterFiles(t, dir) {
				clusters++
				if before[path] != content {
					t.Errorf("the command of the README makes something else of %s:\n%s", path, content)
				}
				if _, err := os.Stat(filepath.Join(filepath.Dir(path), layout.FluxFile)); err != nil {
					t.Error(err)
				}
			}
			if clusters == 0 || clusters != len(commands) {
				t.Errorf("%d clusters and %d commands", clusters, len(commands))
			}
		})
	}
}

// source is what init makes of a fleet's URL.
const source = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata:
  name: flux-system
  namespace: flux-system
spec:
  interval: 1m0s
  url: https://git.example.com/platform/fleet.git
  ref:
    branch: main
`

// initialised puts what init writes of an environment's Flux where it belongs, as far as `cluster add` looks at it.
func initialised(t *testing.T, dir string, in layout.Layout, environment string) {
	t.Helper()
	flux, err := scaffold.WorkloadFluxFiles(scaffold.WorkloadFluxOptions{Layout: in, Environment: environment, Source: []byte(source)})
	if err != nil {
		t.Fatal(err)
	}
	apps, err := scaffold.EnvironmentFiles(in, scaffold.Environment{Name: environment})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(flux, apps...) {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		if _, err := os.Lstat(path); err == nil {
			continue // the example's own
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// clusterFiles are the cluster.yaml files of a fleet repo, content by path.
func clusterFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "providers", "*", "*", "clusters", "*", "*", "cluster.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = string(content)
	}
	return files
}
