//go:build e2e

package e2e

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Simulated clusters run nothing, so their environment's part of the repo would reach nobody: in these tests the management cluster itself
// stands in for a cluster of staging.
const standIn = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: stand-in
  namespace: flux-system
spec:
  interval: 10m
  retryInterval: 5s
  path: ./providers/docker/v1/clusters/staging/common/apps
  sourceRef:
    kind: GitRepository
    name: flux-system
  prune: true
  # No node runs the pods of a Deployment, so nobody waits for them.
  patches:
  - target:
      kind: Kustomization
    patch: |
      apiVersion: kustomize.toolkit.fluxcd.io/v1
      kind: Kustomization
      metadata:
        name: any
      spec:
        retryInterval: 5s
        wait: false
        dependsOn: null
`

// TestExampleTwoClouds brings up the management cluster of each cloud, one after the other, as one person does from one clone. The
// identities are left out: their CRDs come with the clouds' providers.
func TestExampleTwoClouds(t *testing.T) {
	files := exampleFiles(t, "two-clouds")
	for _, cloud := range []string{"aws", "azure"} {
		delete(files, "providers/"+cloud+"/v1/mgmt/identities.yaml")
	}
	fleet, clouds, _ := strings.Cut(files["fleet.yaml"], "  - name: mgmt-aws\n")
	if clouds == "" {
		t.Fatal("fleet.yaml has no mgmt-aws any more")
	}
	files["fleet.yaml"] = fleet
	for _, cloud := range []string{"aws", "azure"} {
		files["fleet.yaml"] += fmt.Sprintf("  - name: mgmt-%[1]s\n    host:\n      type: embedded\n    kubernetesVersion: %[2]s\n"+
			"    cloud: %[1]s\n    providers:\n    - name: docker\n",
			cloud, kubernetesVersion)
	}
	server := serve(t, files)
	f := newFleetOn(t, onEmbedded, "mgmt-aws") // who makes both has the key of the first for the second
	for _, c := range []struct {
		mgmt     string
		clusters map[string]string // and their environments
	}{
		{"mgmt-aws", map[string]string{"shop-dev": "dev", "shop": "prod"}},
		{"mgmt-azure", map[string]string{"office-dev": "dev", "office": "prod"}},
	} {
		f.name = c.mgmt
		mgmt := f.client(f.initExample(server).Kubeconfig)
		f.allReady(slices.Sorted(maps.Keys(c.clusters))...)
		for name, environment := range c.clusters {
			if got := present(t, mgmt, kube.Key{Name: name}, &corev1.Namespace{}).Labels["fleetctl.dev/environment"]; got != environment {
				t.Errorf("the identities see %s in the environment %q, not %s", name, got, environment)
			}
		}
		f.ok("host", "delete", "--force", "--yes", "--management", f.name) // the next one needs the docker provider's port
	}
}

// TestExampleAppDelivery brings up the fleet of the application from a folder without a remote, but for the images' automation, which needs
// a remote and controllers of its own (see TestImageAutomation). Then production gets a channel of tags, as the walk-through proposes.
func TestExampleAppDelivery(t *testing.T) {
	files := appDelivery(t)
	files["fleet.yaml"] = strings.NewReplacer(
		gitURL, "    branch: main\n", "    - image-reflector-controller\n", "", "    - image-automation-controller\n", "",
	).Replace(files["fleet.yaml"])
	delete(files, images)
	f := newFleetOn(t, onEmbedded, "app-delivery")
	f.git("init", "--quiet", "--initial-branch", "main")
	f.commit("the example", files)
	mgmt := f.client(decode[initResult](t, f.ok("init", "--bundle", os.Getenv(envBundle), "-o", "json").stdout).Kubeconfig)
	f.allReady("shop-production", "shop-staging")
	f.runs(mgmt, builtForStaging)
	f.ok("channel", "add", "release", "--environment", "production", "--commit")
	f.promoted("v0.1.0")
	f.allReady("shop-production", "shop-staging")
	f.ok("teardown", "--delete-clusters", "--yes")
}

// builtForStaging is the tag in staging's overlay.
const builtForStaging = "main-3f1c2ab-1790000000"

// images declares what image automation does for the shop.
const images = "providers/docker/v1/mgmt/images/shop.yaml"

// appDelivery is the example with a cluster that stands in for staging's.
func appDelivery(t *testing.T) map[string]string {
	t.Helper()
	files := exampleFiles(t, "app-delivery")
	files["providers/docker/v1/mgmt/stand-in.yaml"] = standIn
	return files
}

// imageOfShop is the image that the Deployment of the shop has; "" while there is none.
func imageOfShop(t *testing.T, mgmt *kube.Client) string {
	t.Helper()
	var shop appsv1.Deployment
	if err := mgmt.Get(t.Context(), kube.Key{Namespace: "shop", Name: "shop"}, &shop); err != nil {
		if kube.IsAbsent(err) {
			return ""
		}
		t.Fatal(err)
	}
	return shop.Spec.Template.Spec.Containers[0].Image
}

// runs waits until what stands in for a cluster of staging has that image of the shop.
func (f *fleet) runs(mgmt *kube.Client, tag string) {
	f.t.Helper()
	eventually(f.t, "staging runs "+tag, 2*time.Minute, func() string {
		if image := imageOfShop(f.t, mgmt); image != "registry.example.com/shop:"+tag {
			return "it runs " + image
		}
		return ""
	})
}

// present returns an object that the management cluster's Flux applies before long.
func present[T client.Object](t *testing.T, c *kube.Client, key kube.Key, object T) T {
	t.Helper()
	eventually(t, fmt.Sprintf("%T %s is there", object, key.Name), time.Minute, func() string {
		if err := c.Get(t.Context(), key, object); err != nil {
			return err.Error()
		}
		return ""
	})
	return object
}

// gitURL is where the examples' repos are, in their fleet.yaml.
const gitURL = "    url: https://git.example.com/platform/fleet.git\n"

// exampleFiles are the files of an example, content by path, with simulated clusters on an embedded host in the place of others.
func exampleFiles(t *testing.T, name string) map[string]string {
	t.Helper()
	root, files := filepath.Join("..", "..", "..", "examples", name), map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content := example(t, path.Join(name, file))
		if flavour, ok := strings.CutPrefix(strings.TrimSuffix(path.Base(file), ".yaml"), "chart-"); ok {
			file, content = path.Join(path.Dir(file), "chart-in-memory.yaml"), strings.ReplaceAll(content, flavour, "in-memory")
		}
		if path.Base(file) == "cluster.yaml" {
			content = simulated(t, path.Base(path.Dir(path.Dir(file))), content)
		}
		files[file] = content
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	files["fleet.yaml"] = strings.ReplaceAll(files["fleet.yaml"], "type: kind", "type: embedded")
	return files
}

// simulated is a cluster.yaml of an environment with the chart in-memory, and those of its values that every flavour has.
func simulated(t *testing.T, environment, content string) string {
	t.Helper()
	namespace, release, _ := strings.Cut(content, "\n---\n")
	var r map[string]any
	if err := yaml.Unmarshal([]byte(release), &r); err != nil {
		t.Fatal(err)
	}
	spec := r["spec"].(map[string]any)
	spec["chartRef"].(map[string]any)["name"] = environment + "-in-memory"
	values := spec["values"].(map[string]any)
	keep(values, "kubernetesVersion", "controlPlane", "pools")
	for _, pool := range values["pools"].([]any) {
		keep(pool.(map[string]any), "name", "replicas", "min", "max")
	}
	changed, err := yaml.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return namespace + "\n---\n" + string(changed)
}

// keep takes all but these keys out of a map.
func keep(m map[string]any, keys ...string) {
	maps.DeleteFunc(m, func(key string, _ any) bool { return !slices.Contains(keys, key) })
}

// serve has the files in a repository behind TLS, and in their fleet.yaml the way to it.
func serve(t *testing.T, files map[string]string) *gittest.HTTPS {
	t.Helper()
	server := gittest.NewHTTPS(t, gittest.Options{})
	files["ca.pem"] = string(server.CA)
	files["fleet.yaml"] = strings.Replace(files["fleet.yaml"], gitURL,
		fmt.Sprintf("    url: %s\n    username: %s\n    caFile: ca.pem\n    interval: 5s\n", server.URL, server.Username), 1)
	server.Seed(t, "main", files)
	return server
}

// initExample makes the management cluster of the fleet's name, in a new clone of what the server has.
func (f *fleet) initExample(server *gittest.HTTPS) initResult {
	f.t.Helper()
	ca := filepath.Join(f.home, "ca.pem")
	if err := os.WriteFile(ca, server.CA, 0o644); err != nil {
		f.t.Fatal(err)
	}
	f.token, f.fluxToken = server.Token, server.ReadToken
	return decode[initResult](f.t, f.ok("init", "--bundle", os.Getenv(envBundle), "-o", "json", "--management", f.name,
		"--git-url", server.URL, "--git-username", server.Username, "--git-ca-file", ca).stdout)
}

// allReady waits until Flux has applied everything, and the clusters that there are, these and no others, are Ready.
func (f *fleet) allReady(clusters ...string) {
	f.t.Helper()
	eventually(f.t, strings.Join(clusters, " and ")+" are Ready", 5*time.Minute, func() string {
		st, code := f.status("--management", f.name)
		var names []string
		for _, c := range st.Clusters {
			if c.Available {
				names = append(names, c.Name)
			}
		}
		slices.Sort(names)
		if code == 0 && slices.Equal(names, clusters) {
			return ""
		}
		return fmt.Sprintf("exit %d, Available: %q, %+v", code, names, st.Problems)
	})
}
