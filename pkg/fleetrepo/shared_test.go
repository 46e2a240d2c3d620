package fleetrepo

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

const oneFleet = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  environments: [{name: dev}, {name: prod}]
  managementClusters:
  - {name: first, kubernetesVersion: v1.36.3, providers: [{name: docker}]}
`

const policy = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: policy, namespace: kube-public}\n"

// filled is a repo with one management cluster, and an environment dev with a feature, a tenant and a file of the team.
func filled(t *testing.T) *Repo {
	t.Helper()
	r := cloudsRepo(t, oneFleet)
	edit := func(e *Edit, err error) {
		t.Helper()
		_, r = done(t, r, e, err)
	}
	edit(r.AddFeature("web"))
	edit(r.EnableFeature("web", FeatureOptions{Environments: []string{"dev"}}))
	edit(r.AddTenant("shop", TenantOptions{Environments: []string{"dev"}}))
	write(t, r.Dir, "providers/docker/v1/clusters/dev/common/namespaced/policy.yaml", []byte(policy))
	return r
}

// The first cluster of an environment at a management cluster gets what the environment has, also if fleet.yaml got that management cluster
// afterwards.
func TestFirstClusterGetsWhatItsEnvironmentHas(t *testing.T) {
	for name, tc := range map[string]struct {
		providers     []string
		flavour, home string // of the cluster at the second management cluster
		inFirst       bool   // whether the first one has a cluster of the environment
		there         map[string]string
		want          map[string]string // parts of further files
	}{
		"the same cloud": {providers: []string{"docker"}, flavour: "in-memory", home: "docker/v2", inFirst: true},
		"no cluster yet": {providers: []string{"docker"}, flavour: "in-memory", home: "docker/v2"},
		"another cloud":  {providers: []string{"aws"}, flavour: "aws-eks", home: "aws/v1", inFirst: true},
		"a further cloud": {
			providers: []string{"docker", "aws"}, flavour: "aws-eks", home: "aws/v2", inFirst: true,
			want: map[string]string{
				"tenants/aws/common/shop/quota.yaml": "ResourceQuota",
				// The home has it too, before its own first cluster.
				"providers/docker/v2/clusters/dev/common/apps/features/web.yaml": "path: ./features/web/namespaced\n",
				"providers/docker/v2/clusters/dev/common/apps/tenants/shop.yaml": "path: ./tenants/docker/dev/shop\n",
			},
		},
		"lists of files": {
			providers: []string{"docker"}, flavour: "in-memory", home: "docker/v2", inFirst: true,
			there: map[string]string{
				"providers/docker/v1/clusters/dev/common/namespaced/kustomization.yaml": "resources:\n- policy.yaml\n- more\n",
				"providers/docker/v1/clusters/dev/common/namespaced/more/a.yaml":        policy,
				"providers/docker/v1/clusters/dev/common/namespaced/patch.yaml":         policy,
				"providers/docker/v2/clusters/dev/common/namespaced/kustomization.yaml": "resources: []\n",
				"providers/docker/v2/clusters/dev/common/apps/kustomization.yaml":       "resources: [environment.yaml]\n",
				"providers/docker/v2/clusters/dev/common/kustomization.yaml":            "resources: []\n",
			},
			want: map[string]string{
				"providers/docker/v2/clusters/dev/common/namespaced/kustomization.yaml": "- more\n",
				"providers/docker/v2/clusters/dev/common/namespaced/more/a.yaml":        policy,
				"providers/docker/v2/clusters/dev/common/apps/kustomization.yaml":       "features/web.yaml",
				"providers/docker/v2/clusters/dev/common/kustomization.yaml":            "resources: []\n",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := filled(t)
			edit := func(e *Edit, err error) []string {
				t.Helper()
				_, r = done(t, r, e, err)
				return e.Notes
			}
			if tc.inFirst {
				edit(r.Add(AddOptions{Name: "a", Environment: "dev", Flavour: "in-memory"}))
			}
			var providers []v1alpha1.Provider
			for _, p := range tc.providers {
				providers = append(providers, v1alpha1.Provider{Name: p})
			}
			edit(r.AddManagementCluster(v1alpha1.ManagementCluster{Name: "second", KubernetesVersion: "v1.36.3", Providers: providers}))
			for file, content := range tc.there {
				write(t, r.Dir, file, []byte(content))
			}
			add := AddOptions{Name: "x", Environment: "dev", Flavour: tc.flavour, ManagementCluster: "second"}
			if strings.HasPrefix(tc.flavour, "aws") {
				add.Set = mustAssign(t, "region=eu-central-1")
			}
			notes := edit(r.Add(add))
			const note = "It is the first cluster of dev at management cluster second: what dev has for all its clusters comes along from " +
				"providers/docker/v1/clusters/dev/common."
			if !slices.Contains(notes, note) {
				t.Errorf("no note: %q", notes)
			}
			cloud, _, _ := strings.Cut(tc.home, "/")
			common := "providers/" + tc.home + "/clusters/dev/common/"
			want := map[string]string{
				common + "apps/features/web.yaml": "path: ./features/web/namespaced\n", common + "namespaced/policy.yaml": policy,
				common + "apps/tenants/shop.yaml":                       "path: ./tenants/" + cloud + "/dev/shop\n",
				"tenants/" + cloud + "/dev/shop/kustomization.yaml":     "../../common/shop",
				"providers/" + tc.home + "/clusters/dev/x/cluster.yaml": "name: x\n",
			}
			maps.Copy(want, tc.want)
			for file, part := range want {
				if content, err := r.read(file); err != nil || !strings.Contains(string(content), part) {
					t.Errorf("%s: %v\n%s\nwant in it: %s", file, err, content, part)
				}
			}
			if content, err := r.generated(common + "namespaced/kustomization.yaml"); err != nil || strings.Contains(string(content), "patch.yaml") {
				t.Errorf("it lists what the first does not list: %v\n%s", err, content)
			}

			// The next cluster brings nothing along, also not what has changed since.
			write(t, r.Dir, "providers/docker/v1/clusters/dev/common/namespaced/later.yaml", []byte(policy))
			add.Name = "z"
			if notes := edit(r.Add(add)); slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "comes along") }) {
				t.Errorf("the next one: %q", notes)
			}
			if r.exists(common + "namespaced/later.yaml") {
				t.Error("the next one brings the team's files")
			}
		})
	}
}

// What a management cluster has already stays, and its other environments get nothing.
func TestFirstClusterKeepsWhatIsThere(t *testing.T) {
	r := filled(t)
	edit := func(e *Edit, err error) {
		t.Helper()
		_, r = done(t, r, e, err)
	}
	edit(r.AddManagementCluster(v1alpha1.ManagementCluster{Name: "second", Providers: []v1alpha1.Provider{{Name: "docker"}}}))
	const there = "providers/docker/v2/clusters/dev/common/namespaced/policy.yaml"
	write(t, r.Dir, there, []byte("# ours\n"+policy))
	edit(r.Add(AddOptions{
		Name: "x", Environment: "dev", Flavour: "in-memory", ManagementCluster: "second", KubernetesVersion: "v1.36.3",
	}))
	if content, err := r.read(there); err != nil || string(content) != "# ours\n"+policy {
		t.Errorf("%v\n%s", err, content)
	}
	if r.exists("providers/docker/v2/clusters/prod/common/apps/features/web.yaml") {
		t.Error("prod has what dev has")
	}
}

// A list tells which environments have something for only some of their clusters. To enable it again mends that.
func TestPartly(t *testing.T) {
	r := filled(t)
	edit := func(e *Edit, err error) {
		t.Helper()
		_, r = done(t, r, e, err)
	}
	partly := func() (feature []string, tenant bool) {
		t.Helper()
		features, err := r.Features()
		if err != nil || len(features) != 1 || !slices.Equal(features[0].Environments, []string{"dev"}) {
			t.Fatalf("%+v, %v", features, err)
		}
		tenants, err := r.Tenants()
		if err != nil || len(tenants) != 1 || len(tenants[0].Environments) != 1 {
			t.Fatalf("%+v, %v", tenants, err)
		}
		return features[0].Partly, tenants[0].Environments[0].Partly
	}
	edit(r.AddManagementCluster(v1alpha1.ManagementCluster{Name: "second", Providers: []v1alpha1.Provider{{Name: "docker"}}}))
	if feature, tenant := partly(); len(feature) > 0 || tenant {
		t.Errorf("without clusters: %v, %v", feature, tenant)
	}
	for _, file := range []string{"v1/clusters/dev/a/", "v2/clusters/dev/x/", "v2/clusters/prod/y/"} {
		write(t, r.Dir, "providers/docker/"+file+"cluster.yaml", []byte("a: b\n"))
		write(t, r.Dir, "providers/docker/"+file+"flux.yaml", []byte("a: b\n"))
	}
	if feature, tenant := partly(); !slices.Equal(feature, []string{"dev"}) || !tenant {
		t.Errorf("as an older fleetctl left it: %v, %v", feature, tenant)
	}
	edit(r.EnableFeature("web", FeatureOptions{Environments: []string{"dev"}}))
	edit(r.AddTenant("shop", TenantOptions{Environments: []string{"dev"}}))
	if feature, tenant := partly(); len(feature) > 0 || tenant {
		t.Errorf("mended: %v, %v", feature, tenant)
	}
}

// An application goes to the clouds that have its tenant, and to no other: nothing would apply it there.
func TestAppWhereItsTenantIs(t *testing.T) {
	r := filled(t)
	e, err := r.AddManagementCluster(v1alpha1.ManagementCluster{Name: "second", Providers: []v1alpha1.Provider{{Name: "aws"}}})
	_, r = done(t, r, e, err)
	e, err = r.AddApp("shop", "api", scaffold.AppSource{URL: "https://git.example.com/api.git", Branch: "main"}, nil)
	_, r = done(t, r, e, err)
	if !r.exists("tenants/docker/dev/shop/app-api.yaml") || r.exists("tenants/aws") {
		t.Error("it is not where the tenant is")
	}
}

// Without a management cluster, nothing of what only it needed stays, and what others need does.
func TestRemoveManagementCluster(t *testing.T) {
	r := filled(t)
	edit := func(e *Edit, err error) {
		t.Helper()
		_, r = done(t, r, e, err)
	}
	write(t, r.Dir, v1alpha1.LockFileName, must(v1alpha1.MarshalLock(&v1alpha1.Lock{Components: []v1alpha1.LockedComponent{{
		Name: v1alpha1.CoreProviderName, Type: v1alpha1.ComponentType(v1alpha1.ProviderCore), Version: "v1.14.2", SHA256: strings.Repeat("1", 64),
	}}})))
	edit(r.AddManagementCluster(v1alpha1.ManagementCluster{Name: "east", Providers: []v1alpha1.Provider{{Name: "docker"}}}))
	edit(r.RemoveManagementCluster("east"))
	if !r.exists("charts/docker/Chart.yaml") {
		t.Fatal("the chart of first went with east")
	}
	before := treeOf(t, r)
	edit(r.AddManagementCluster(v1alpha1.ManagementCluster{Name: "west", Providers: []v1alpha1.Provider{
		{Name: "aws"}, {Name: "vsphere"}, {Name: "cluster-api", Type: v1alpha1.ProviderCore, Version: "v1.14.2"},
	}}))
	edit(r.AddManagementCluster(v1alpha1.ManagementCluster{Name: "east", Providers: []v1alpha1.Provider{{Name: "docker"}}}))
	edit(r.EnableFeature("web", FeatureOptions{Environments: []string{"dev"}}))
	edit(r.AddTenant("shop", TenantOptions{Environments: []string{"dev"}}))
	if !r.exists("tenants/aws/dev/shop/kustomization.yaml") || !r.exists("charts/aws-eks/Chart.yaml") || !r.exists("charts/vsphere-kubeadm") {
		t.Fatal("west has no tenant or no chart")
	}
	edit(r.RemoveManagementCluster("west"))
	edit(r.RemoveManagementCluster("east")) // first has the same cloud: its tenants stay
	if diff := cmp.Diff(before, treeOf(t, r)); diff != "" {
		t.Errorf("(-before +after)\n%s", diff)
	}
}
