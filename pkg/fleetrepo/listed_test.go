package fleetrepo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// A file that a command adds to a folder with a person's kustomization.yaml is listed there, because Flux would not apply it otherwise.
// After the removal of the file, every byte of the list is as before.
func TestFilesAreListed(t *testing.T) {
	const (
		dev  = "providers/docker/v1/clusters/dev/"
		apps = dev + "common/apps/"
	)
	type edit = func(r *Repo) (*Edit, error)
	enable, disable := func(o FeatureOptions) edit {
		return func(r *Repo) (*Edit, error) { return r.EnableFeature("ingress", o) }
	}, func(o FeatureOptions) edit {
		return func(r *Repo) (*Edit, error) { return r.DisableFeature("ingress", o) }
	}
	onDemo, inDev := FeatureOptions{Clusters: []string{"demo"}}, FeatureOptions{Environments: []string{"dev"}}
	addTenant := func(r *Repo) (*Edit, error) { return r.AddTenant("shop", TenantOptions{}) }
	removeTenant := func(r *Repo) (*Edit, error) { return r.RemoveTenant("shop", nil) }
	removeCluster := func(r *Repo) (*Edit, error) {
		step, err := r.Remove("two", false)
		if err != nil {
			return nil, err
		}
		return &step.Edit, nil
	}
	for name, tc := range map[string]struct {
		list, want  string
		add, remove edit
		steps       int // of remove
	}{
		"feature of a cluster, its folder": {
			dev + "demo/kustomization.yaml", "features/ingress.yaml",
			enable(onDemo), disable(onDemo), 1,
		},
		"feature of a cluster, the folder of features": {
			dev + "demo/features/Kustomization", "ingress.yaml", enable(onDemo),
			disable(FeatureOptions{}), 1,
		},
		"feature of a cluster, the environment's": {
			dev + "kustomization.yaml", "demo/features/ingress.yaml",
			enable(onDemo), disable(onDemo), 1,
		},
		"feature of an environment, what all have": {apps + "kustomization.yaml", "features/ingress.yaml", enable(inDev), disable(inDev), 1},
		"feature of an environment, the features": {
			apps + "features/kustomization.yml", "ingress.yaml", enable(inDev),
			disable(FeatureOptions{}), 1,
		},
		"feature of an environment, nobody else's list": {dev + "kustomization.yaml", "", enable(inDev), disable(inDev), 1},
		"tenant, what all have":                         {apps + "kustomization.yaml", "tenants/shop.yaml", addTenant, removeTenant, 1},
		"tenant, the folder of tenants":                 {apps + "tenants/kustomization.yaml", "shop.yaml", addTenant, removeTenant, 1},
		"cluster": {dev + "kustomization.yaml", "two/cluster.yaml", func(r *Repo) (*Edit, error) {
			return r.Add(AddOptions{Name: "two", Environment: "dev", Flavour: "in-memory"})
		}, removeCluster, 2},
	} {
		for form, content := range map[string]string{
			"no list":    "# Ours.\nkind: Kustomization\nlabels:\n- pairs: {a: b}\n",
			"empty list": "resources: [] # nothing yet\nkind: Kustomization\n",
			"list":       "kind: Kustomization\nresources:\n# the cluster\n- ./cluster.yaml # itself\n\n- other.yaml\npatches: []\n",
			"brackets":   "kind: Kustomization\nresources: [cluster.yaml, other.yaml]   # all\n",
			"CRLF":       "kind: Kustomization\r\nresources:\r\n- cluster.yaml\r\n",
		} {
			t.Run(name+", "+form, func(t *testing.T) {
				r := open(t)
				for _, env := range r.EnvironmentNames() {
					for _, l := range r.layouts() {
						e := &Edit{}
						_, r = done(t, r, e, r.withApps(e, l, env))
					}
				}
				e, err := r.AddFeature("ingress")
				_, r = done(t, r, e, err)
				for _, f := range must(scaffold.ChartFiles("in-memory")) {
					write(t, r.Dir, f.Path, f.Content)
				}
				write(t, r.Dir, tc.list, []byte(content))
				before := contents(t, r)

				for range 2 { // the second time changes nothing
					e, err = tc.add(r)
					_, r = done(t, r, e, err)
					if tc.steps == 2 {
						break
					}
				}
				if got := resources(t, r, tc.list); tc.want == "" && len(got) > 2 || tc.want != "" && !slices.Contains(got, tc.want) {
					t.Errorf("resources are %q, want %s among them", got, tc.want)
				}
				for range tc.steps {
					e, err = tc.remove(r)
					_, r = done(t, r, e, err)
				}
				if diff := cmp.Diff(before, contents(t, r)); diff != "" {
					t.Errorf("(-before +after)\n%s", diff)
				}
			})
		}
	}
}

// resources returns the resources of a kustomization.yaml.
func resources(t *testing.T, r *Repo, file string) []string {
	t.Helper()
	var list struct{ Resources []string }
	if err := yaml.Unmarshal(must(r.read(file)), &list); err != nil {
		t.Fatal(err)
	}
	return list.Resources
}

// A cluster without Flux stays in the list of its environment, in any spelling. A removed cluster leaves the list.
func TestListOfClusters(t *testing.T) {
	const dir, list = "providers/docker/v1/clusters/dev/", "resources:\n- common\n%s- third.yaml\n"
	r := open(t)
	write(t, r.Dir, dir+"kustomization.yaml", fmt.Appendf(nil, list, "- ./demo/ # the demo\n"))
	write(t, r.Dir, dir+"demo/kustomization.yaml", []byte("resources:\n- cluster.yaml\n- flux.yaml\n- features/x.yaml\n"))
	write(t, r.Dir, dir+"demo/flux.yaml", []byte("kind: x\n"))
	e, err := r.SetFlux("demo", scaffold.FluxNone, "")
	_, r = done(t, r, e, err)
	if got := strings.Join(resources(t, r, dir+"demo/kustomization.yaml"), " "); got != "cluster.yaml features/x.yaml" {
		t.Errorf("the cluster has %s", got)
	}
	if got := strings.Join(resources(t, r, dir+"kustomization.yaml"), " "); got != "common ./demo/ third.yaml" {
		t.Errorf("the environment has %s", got)
	}
	for range 2 {
		step, err := r.Remove("demo", false)
		if err != nil {
			t.Fatal(err)
		}
		_, r = done(t, r, &step.Edit, nil)
	}
	if got, want := string(must(r.read(dir+"kustomization.yaml"))), fmt.Sprintf(list, ""); got != want {
		t.Errorf("the list is\n%s", got)
	}
}

// A new Secret is listed where Flux reads it from: in the nearest kustomization.yaml up to the folder that Flux applies, and in none
// above it.
func TestSecretsAreListed(t *testing.T) {
	const (
		mgmt  = "providers/docker/v1/mgmt/"
		dev   = "providers/docker/v1/clusters/dev/"
		apply = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: shop\nspec:\n  path: %s\n"
		flux  = dev + "common/apps/shop.yaml"
	)
	for name, tc := range map[string]struct {
		secret, list, path string
		resources          string
		want, note         string
	}{
		"its own folder": {
			secret: mgmt + "a.yaml", list: mgmt, resources: "x.yaml",
			want: "x.yaml a.yaml",
		},
		"the management cluster's": {
			secret: mgmt + "ids/a.yaml", list: mgmt, resources: "x.yaml",
			want: "x.yaml ids/a.yaml", note: "lists it",
		},
		"the environment's": {
			secret: dev + "demo/a.yaml", list: dev, resources: "demo/x.yaml",
			want: "demo/x.yaml demo/a.yaml", note: "lists it",
		},
		"above what Flux applies": {
			secret: "shop/dev/a.yaml", list: "shop/", path: "./shop/dev", resources: "x.yaml",
			want: "x.yaml",
		},
		"at the top of what Flux applies": {
			secret: "shop/dev/a.yaml", list: "shop/", path: "shop/", resources: "x.yaml",
			want: "x.yaml dev/a.yaml", note: "lists it",
		},
		"with a default": {
			secret: "shop/dev/a.yaml", list: "shop/", path: "${p:=./shop}", resources: "x.yaml",
			want: "x.yaml dev/a.yaml", note: "lists it",
		},
		"with a variable": {
			secret: "shop/demo/in/a.yaml", list: "shop/demo/", path: "./shop/${cluster_name}", resources: "x.yaml",
			want: "x.yaml in/a.yaml", note: "lists it",
		},
		"beside a listed file": {
			secret: "base/dev/a.yaml", list: "base/", resources: "dev/x.yaml",
			want: "dev/x.yaml dev/a.yaml", note: "lists it",
		},
		"nobody knows whether it is meant": {
			secret: "base/dev/a.yaml", list: "base/", resources: "x.yaml",
			want: "x.yaml", note: "base/kustomization.yaml does not list it: if Flux is to apply it from there, add dev/a.yaml",
		},
		"nobody knows, at the repo's top": {
			secret: "base/a.yaml", list: "", resources: "x.yaml",
			want: "x.yaml", note: "add base/a.yaml to its resources",
		},
		"beside a listed file, at the top": {
			secret: "base/a.yaml", list: "", resources: "./base/x.yaml",
			want: "./base/x.yaml base/a.yaml", note: "lists it",
		},
		"an application of another repository": {
			secret: "base/a.yaml", list: "", resources: "x.yaml",
			path: "./\n  sourceRef: {name: web}\n---\nkind: GitRepository\nmetadata:\n  name: web\nspec: {url: x}",
			want: "x.yaml", note: "add base/a.yaml to its resources",
		},
		"a folder above the whole Git repo": {
			secret: "shop/a.yaml", list: "", path: "./", resources: "x.yaml",
			want: "x.yaml shop/a.yaml", note: "lists it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t)
			write(t, r.Dir, tc.list+"kustomization.yaml", fmt.Appendf(nil, "resources: [%s]\n", tc.resources))
			if tc.path != "" {
				write(t, r.Dir, flux, fmt.Appendf(nil, apply, tc.path))
			}
			e := &Edit{}
			err := r.EnlistSecret(e, tc.secret)
			if notes := strings.Join(e.Notes, "\n"); !strings.Contains(notes, tc.note) || (tc.note == "") != (notes == "") {
				t.Errorf("notes are %q, want %q", notes, tc.note)
			}
			_, r = done(t, r, e, err)
			if got := strings.Join(resources(t, r, tc.list+"kustomization.yaml"), " "); got != tc.want {
				t.Errorf("resources are %q, want %q", got, tc.want)
			}
		})
	}
}

// Two generations of management clusters in one cloud share its tenants. An application is listed there once.
func TestAppOfTwoGenerationsIsListedOnce(t *testing.T) {
	source := scaffold.AppSource{URL: "https://github.com/acme/web"}
	r := open(t)
	e, err := r.AddManagementCluster(v1alpha1.ManagementCluster{
		Name: "second", Generation: "v2", Providers: []v1alpha1.Provider{{Name: "docker"}},
	})
	_, r = done(t, r, e, err)
	e, err = r.AddTenant("shop", TenantOptions{Environments: []string{"dev"}, Source: &source})
	_, r = done(t, r, e, err)
	e, err = r.AddApp("shop", "web", source, nil)
	_, r = done(t, r, e, err)
	got := resources(t, r, "tenants/docker/dev/shop/kustomization.yaml")
	for _, file := range []string{"app-shop.yaml", "app-web.yaml"} {
		if n := len(slices.DeleteFunc(slices.Clone(got), func(entry string) bool { return entry != file })); n != 1 {
			t.Errorf("%s is listed %d times: %q", file, n, got)
		}
	}
}

// A kustomization.yaml with another name that kustomize reads gets no second one beside it: kustomize builds no folder with two.
func TestOneKustomizationInAFolder(t *testing.T) {
	source := scaffold.AppSource{URL: "https://github.com/acme/web"}
	for name, tc := range map[string]struct {
		dir   string
		edit  func(r *Repo) (*Edit, error)
		lists string
	}{
		"environment, tenant": {"providers/docker/v1/clusters/dev/common/apps", func(r *Repo) (*Edit, error) {
			return r.AddTenant("shop", TenantOptions{})
		}, "tenants/shop.yaml"},
		"feature": {"features/ingress/namespaced", func(r *Repo) (*Edit, error) { return r.AddFeature("ingress") }, ""},
		"tenant": {"tenants/docker/dev/shop", func(r *Repo) (*Edit, error) {
			return r.AddTenant("shop", TenantOptions{Source: &source})
		}, "app-shop.yaml"},
		"network": {"addons/cni/cilium", func(r *Repo) (*Edit, error) {
			return r.AddNetwork("cilium", NetworkOptions{Files: []manifest.File{{Path: "agent.yaml", Content: []byte("a: b\n")}}})
		}, "agent.yaml"},
		"network with its list": {"addons/cni/cilium", func(r *Repo) (*Edit, error) {
			return r.AddNetwork("cilium", NetworkOptions{Files: []manifest.File{
				{Path: "kustomization.yaml", Content: []byte("resources: [agent.yaml]\n")}, {Path: "agent.yaml", Content: []byte("a: b\n")},
			}})
		}, "agent.yaml"},
	} {
		for _, file := range layout.KustomizationNames() {
			t.Run(name+", "+file, func(t *testing.T) {
				r := open(t)
				at := tc.dir + "/" + file
				write(t, r.Dir, at, []byte("resources: []\n"))
				e, err := tc.edit(r)
				_, r = done(t, r, e, err)
				for _, other := range layout.KustomizationNames() {
					if other != file && r.exists(tc.dir+"/"+other) {
						t.Errorf("%s is beside %s", other, at)
					}
				}
				if got := resources(t, r, at); tc.lists != "" && !slices.Contains(got, tc.lists) {
					t.Errorf("%s lists %q, not %s", at, got, tc.lists)
				}
			})
		}
	}
}
