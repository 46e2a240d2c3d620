package fleetrepo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

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
