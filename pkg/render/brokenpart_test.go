package render_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/render"
)

// The parts of a folder that can be read are built together beside one that cannot: the name of a generated object is right in the objects
// of other parts that use it.
func TestRestIsBuiltTogether(t *testing.T) {
	for name, tt := range map[string]struct {
		broken string
		alone  bool // the rest does not build together, either
	}{
		"a missing path": {"resources: [none.yaml]\n", false},
		"not YAML":       {"resources: [none.yaml\n", false},
		"two faults":     {"resources: [none.yaml]\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := map[string]string{
				"fleet.yaml": "apiVersion: fleetctl.dev/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n" +
					"  git: {url: 'https://git.example.com/acme/fleet.git'}\n  environments: [{name: staging}]\n  managementClusters:\n" +
					"  - {name: mgmt, path: mgmt, host: {type: kind}, kubernetesVersion: v1.36.3}\n",
				"mgmt/kustomization.yaml":        "resources: [broken, config, app]\n",
				"mgmt/broken/kustomization.yaml": tt.broken,
				"mgmt/config/kustomization.yaml": "configMapGenerator: [{name: settings, namespace: default, literals: [a=b]}]\n",
				"mgmt/app/kustomization.yaml":    "resources: [app.yaml]\n",
				"mgmt/app/app.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: app, namespace: default}\n" +
					"spec: {containers: [{name: a, image: a:v1, envFrom: [{configMapRef: {name: settings}}]}]}\n",
			}
			if tt.alone {
				files["mgmt/kustomization.yaml"] = "resources: [broken, config, app, twice]\n"
				files["mgmt/twice/kustomization.yaml"] = "resources: [../app/app.yaml]\n"
			}
			for name, content := range files {
				file := filepath.Join(dir, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			res, err := renderer(t, dir, "").All(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var config, app *render.Object
			for _, o := range res.Objects {
				switch o.Kind {
				case "ConfigMap":
					config = o
				case "Pod":
					app = o
				}
			}
			if config == nil || app == nil {
				t.Fatalf("the rest is not built: %v, %s", res.Findings, text(res))
			}
			if got := strings.Contains(string(app.JSON), `{"name":"`+config.Name+`"}`); got == tt.alone {
				t.Errorf("%s and %s", config.Name, app.JSON)
			}
			if res.Findings.Err() == nil {
				t.Error("there is no finding")
			}
		})
	}
}
