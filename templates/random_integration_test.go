//go:build integration

package templates_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/validate"
	"github.com/fleetctl/fleetctl/templates/templatestest"
)

// What the schema of a chart accepts, the templates render, unless they say which values do not fit each other; and what they render, the
// providers' CRDs accept, and no rule of `fleetctl validate` about what a provider refuses knows it better. One run judges all clusters, so
// that the CRDs are read once.
func TestSchemasAcceptWhatWorks(t *testing.T) {
	dir, all := t.TempDir(), map[string]map[string]any{}
	flavours := flavours(t)
	in := layout.Layout{Cloud: "docker", Generation: "v1"}
	files, err := scaffold.Repo(scaffold.RepoOptions{
		Fleet: "test", FleetYAML: []byte(fleetOfRandom), ManagementCluster: "mgmt", Layout: in, Charts: flavours, KubernetesVersion: "v1.36.3",
		Environments: []scaffold.Environment{{Name: "dev"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for f, flavour := range flavours {
		random := randomValues(t, flavour)
		for number := range *times {
			name := fmt.Sprintf("c%d-%d", f, number)
			values := random(number)
			made, err := scaffold.ClusterFiles(scaffold.ClusterOptions{
				Name: name, Layout: in, Environment: "dev", Flavour: flavour, Values: values,
			})
			if err != nil {
				t.Fatal(err)
			}
			all[made[0].Path] = values
			files = append(files, made...)
		}
		chart, err := scaffold.EnvironmentChart(in, "dev", flavour)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, chart)
	}
	writeAll(t, dir, files)
	result, err := validate.Run(t.Context(), validate.Options{Dir: dir, CRDs: templatestest.CRDFiles(t), Offline: true, CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	misfits := map[string]bool{}
	for _, f := range result.Findings {
		switch {
		case f.Rule == validate.RuleMissingID, strings.Contains(f.Summary, "addressesFromPools[0].name: there is no "), f.File == "fleet.yaml":
			// no chart makes them
		case f.Rule == validate.RuleNetworks, f.Rule == validate.RuleSkew, ofSeveral(f.Summary):
			misfits[f.File] = true
		default:
			values, _ := yaml.Marshal(all[f.File])
			t.Errorf("seed %d: %s: %s [%s] (%s)\n%s", *seed, f.Severity, f, f.Rule, f.Hint, values)
		}
	}
	t.Logf("seed %d: %d clusters, %d of them with values that do not fit each other, %d objects", *seed, len(all), len(misfits),
		result.Objects)
	if len(misfits) > len(all)/2 {
		t.Errorf("seed %d: too few charts are rendered", *seed)
	}
}

// ofSeveral tells whether a finding is about values that do not fit each other, or about what no pattern says of an address: a schema
// takes them, and the templates cannot compute with addresses.
func ofSeveral(summary string) bool {
	return slices.ContainsFunc([]string{
		"execution error at", "has addresses in common with", "is not within the network's own ranges", "takes no range that does not begin with",
		"the subnets of", "is not in the control plane's subnet",
	}, func(text string) bool { return strings.Contains(summary, text) })
}

const fleetOfRandom = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: test}
spec:
  git: {url: https://git.example.com/acme/fleet.git}
  environments: [{name: dev}]
  managementClusters: [{name: mgmt, cloud: docker, generation: v1}]
`

func writeAll(t *testing.T, dir string, files []manifest.File) {
	t.Helper()
	for _, f := range files {
		name := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
