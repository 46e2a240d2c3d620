package validate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// refusedIn are the findings of all objects in a manifest.
func refusedIn(t *testing.T, manifest string) []string {
	t.Helper()
	var out []string
	for text := range strings.SplitSeq(manifest, "\n---\n") {
		content := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &content); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if len(content) == 0 {
			continue
		}
		f := mapping.Fields(content)
		o := &object{Object: &render.Object{APIVersion: f.Text("apiVersion"), Kind: f.Text("kind"), Name: f.Text("metadata", "name")}}
		for _, finding := range checkRefused(o, content) {
			if finding.Rule != RuleRefused || finding.Hint == "" {
				t.Errorf("%+v", finding)
			}
			out = append(out, finding.Summary)
		}
	}
	return out
}

// What charts make is what providers take: none of the objects in the golden files is refused.
func TestNothingOfChartsIsRefused(t *testing.T) {
	files, err := filepath.Glob("../../templates/testdata/golden/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// Azure wants names with two characters. This also renames clusters in their labels.
		renamed := strings.NewReplacer(`name: "x"`, "name: shop", `clusterName: "x"`, "clusterName: shop").Replace(string(content))
		for _, refused := range refusedIn(t, renamed) {
			t.Errorf("%s: %s", filepath.Base(file), refused)
		}
	}
}

// refusedOf are the findings of an object of a kind that has a spec, or makes what has it.
func refusedOf(t *testing.T, kind, text string) []string {
	t.Helper()
	version, spec := "infrastructure.cluster.x-k8s.io/v1beta2", map[string]any{}
	if strings.HasSuffix(kind, "ControlPlane") {
		version = "controlplane.cluster.x-k8s.io/v1beta2"
	}
	if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(kind, "Template") {
		spec = map[string]any{"template": map[string]any{"spec": spec}}
	}
	manifest, err := yaml.Marshal(map[string]any{
		"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": "shop"}, "spec": spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	return refusedIn(t, string(manifest))
}

// refusedOnce runs a test in which the spec of a kind has one thing that is wrong.
func refusedOnce(t *testing.T, kind, spec, want string) {
	t.Helper()
	t.Run(kind+" "+want, func(t *testing.T) {
		if got := refusedOf(t, kind, spec); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%q", got)
		}
	})
}

// A name that cannot begin the names of machines in Azure, and an object of the same kind that is another provider's.
func TestRefusedNames(t *testing.T) {
	const azure = "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: AzureCluster\nmetadata: {name: NAME}\nspec: {identityRef: " +
		"{kind: AzureClusterIdentity, name: a}}\n"
	for name, bad := range map[string]bool{"shop": false, strings.Repeat("a", 45): true, "a.b": true} {
		if got := refusedIn(t, strings.Replace(azure, "NAME", name, 1)); len(got) > 0 != bad {
			t.Errorf("%s: %q", name, got)
		}
	}
	supervisor := "apiVersion: vmware.infrastructure.cluster.x-k8s.io/v1beta1\nkind: VSphereMachineTemplate\nmetadata: {name: a}\nspec: " +
		"{template: {spec: {providerID: a}}}\n"
	if got := refusedIn(t, supervisor); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
