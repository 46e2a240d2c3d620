package fleetrepo

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
)

// The folders of a fleet without a cloud are renamed to the cloud of its first provider, as long as no Flux reads them.
func TestFirstProviderNamesTheCloud(t *testing.T) {
	const head = "apiVersion: fleetctl.dev/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n  environments:\n    - name: dev\n" +
		"  managementClusters:\n    - name: mgmt\n      host:\n        type: kind\n"
	const providers = "      providers:\n        - name: cluster-api\n          type: core\n"
	files := map[string]string{
		"README.md": "providers/none/v1/mgmt/ and tenants/none/common/\n",
		"providers/none/v1/mgmt/clusters-dev.yaml":    "spec:\n  path: ./providers/none/v1/clusters/dev\n",
		"providers/none/v1/clusters/dev/common/x/k":   "",
		"tenants/none/common/shop/kustomization.yaml": "resources: [../../../../tenants/none/common/shop/x]\n",
	}
	for name, tc := range map[string]struct {
		fleet string
		more  map[string]string
		cloud string
	}{
		"declared":           {head + "      cloud: none\n" + providers, nil, "aws"},
		"by default":         {head + providers, nil, "aws"},
		"Flux reads it":      {head + providers, map[string]string{"providers/none/v1/mgmt/flux-system/gotk-sync.yaml": "a: b\n"}, "none"},
		"another has it":     {head + providers, map[string]string{"providers/aws/v1/mgmt/x.yaml": "a: b\n"}, "none"},
		"another cloud":      {head + "      cloud: eu\n" + providers, nil, "eu"},
		"another shares it":  {head + providers + "    - name: b\n      host: {type: kind}\n      generation: v2\n", nil, "none"},
		"there is a cluster": {head + providers, map[string]string{"providers/none/v1/clusters/dev/a/cluster.yaml": "a: b\n"}, "aws"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			all := map[string]string{v1alpha1.FileName: tc.fleet}
			for _, some := range []map[string]string{files, tc.more} {
				maps.Copy(all, some)
			}
			for name, content := range all {
				file := filepath.Join(dir, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			e, err := r.AddProvider("mgmt", v1alpha1.Provider{Name: "aws"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Changes.Apply(dir); err != nil {
				t.Fatal(err)
			}
			if r, err = Open(dir); err != nil {
				t.Fatal(err)
			}
			m, err := r.Fleet.ManagementCluster("mgmt")
			if err != nil {
				t.Fatal(err)
			}
			if got := m.Layout().Cloud; got != tc.cloud {
				t.Fatalf("the cloud is %s", got)
			}
			wanted := tc.cloud
			if wanted == "eu" {
				wanted = "none" // its folders are its own
			}
			for name, content := range files {
				name = strings.ReplaceAll(name, "/none/", "/"+wanted+"/")
				got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
				if want := strings.ReplaceAll(content, "/none/", "/"+wanted+"/"); err != nil || string(got) != want {
					t.Errorf("%s has %q, %v", name, got, err)
				}
			}
		})
	}
}
