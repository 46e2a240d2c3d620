package upgrade

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
)

// The parts of Cluster API are released together, and nobody tests others side by side.
func TestNoteSkew(t *testing.T) {
	part := func(name string, of releases.ProviderType, installed, declared string) Component {
		return Component{Name: name, Type: string(of), Installed: installed, Declared: declared}
	}
	for name, tc := range map[string]struct {
		core, other Component
		want        string
	}{
		"the same":        {part("cluster-api", releases.Core, "", "v1.14.2"), part("kubeadm", releases.Bootstrap, "", "v1.14.2"), ""},
		"another patch":   {part("cluster-api", releases.Core, "", "v1.14.2"), part("kubeadm", releases.Bootstrap, "", "v1.14.0"), ""},
		"upgraded before": {part("cluster-api", releases.Core, "v1.13.0", "v1.14.2"), part("kubeadm", releases.ControlPlane, "v1.14.2", ""), ""},
		"another minor": {
			part("cluster-api", releases.Core, "", "v1.14.2"), part("kubeadm", releases.ControlPlane, "v1.13.0", ""),
			"v1.13.0 beside Cluster API v1.14.2 is a combination that nobody tests: give both the same version",
		},
		"no part of it": {part("cluster-api", releases.Core, "", "v1.14.2"), part("aws", releases.Infrastructure, "", "v2.9.0"), ""},
		"not known":     {part("cluster-api", releases.Core, "", ""), part("kubeadm", releases.Bootstrap, "", "v1.14.2"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := &planner{plan: &Plan{Components: []Component{tc.other, tc.core}}}
			p.noteSkew()
			if got := p.plan.Components[0].Note; got != tc.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

// Whoever asks why a plan is not whole gets the same answer, however often.
func TestPlanSaysWhatItCouldNotLookUp(t *testing.T) {
	p := &Plan{unread: []unread{{&Component{Name: "docker", Type: TypeFeature}, errors.New("no registry")}}}
	for _, c := range []Component{{Name: "kubeadm"}, {Name: "docker"}, {Name: "kubeadm"}} {
		p.unread = append(p.unread, unread{&c, errors.New("no network")})
	}
	const want = "find out the releases of docker, feature docker, kubeadm: no network"
	for range 2 {
		if got := p.Err().Error(); got != want {
			t.Errorf("got %q", got)
		}
	}
}

// The machines of a management cluster are replaced if it is a workload cluster, and if the file of this cluster declares another version
// of Kubernetes than it runs. What fleet.yaml says for it, and for a cluster of somebody else, is of no use.
func TestPlanOfKubernetes(t *testing.T) {
	dir := t.TempDir()
	const fleet = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  git: {url: "https://127.0.0.1:1/fleet.git"}
  environments: [{name: regions}]
  managementClusters:
  - {name: root, cloud: root, host: {type: embedded}, kubernetesVersion: v1.36.3, providers: [{name: docker, version: v1.14.2}]}
  - {name: eu, parent: root, cloud: eu, kubernetesVersion: v1.34.0, providers: [{name: docker, version: v1.14.2}]}
  - {name: us, parent: root, cloud: us, kubernetesVersion: v1.34.0, providers: [{name: docker, version: v1.14.2}]}
  - {name: ours, cloud: ours, host: {type: existing, existing: {context: ours}}, kubernetesVersion: v1.34.0,
     providers: [{name: docker, version: v1.14.2}]}
`
	if err := os.WriteFile(filepath.Join(dir, v1alpha1.FileName), []byte(fleet), 0o600); err != nil {
		t.Fatal(err)
	}
	repo, err := fleetrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	e, err := repo.Add(fleetrepo.AddOptions{
		Name: "eu", Environment: "regions", ManagementCluster: "root", Flavour: "docker", KubernetesVersion: "v1.36.3",
	})
	if err == nil {
		_, err = e.Changes.Apply(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	if repo, err = fleetrepo.Open(dir); err != nil {
		t.Fatal(err)
	}
	reader, err := components.Open(t.Context(), "", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	v1alpha1.SetDefaults(repo.Fleet, components.Defaults())
	for name, tc := range map[string]struct {
		cluster, installed, declared string
		replaces                     []string
	}{
		"an older one":               {"eu", "v1.35.0+k3s1", "v1.36.3", []string{"all machines of the cluster eu"}},
		"the same, of a distributor": {"eu", "v1.36.3+k3s1", "v1.36.3", nil},
		"not known here":             {"eu", "", "v1.36.3", nil},
		"declared in another repo":   {"us", "v1.35.0", "", nil},
		"somebody else's":            {"ours", "v1.35.0", "", nil},
		"of a host of this machine":  {"root", "v1.35.0", "v1.36.3", nil},
	} {
		m, err := repo.Fleet.ManagementCluster(tc.cluster)
		if err != nil {
			t.Fatal(err)
		}
		p := &planner{
			o: PlanOptions{Repo: repo}, mgmt: m, fleet: repo.Fleet, reader: reader, plan: &Plan{},
			versions: map[string]string{TypeKubernetes + "/" + TypeKubernetes: tc.installed},
		}
		p.listComponents()
		c := &p.plan.Components[len(p.plan.Components)-1]
		p.judgeKubernetes(c)
		if c.Type != TypeKubernetes || c.Declared != tc.declared || !slices.Equal(c.Replaces, tc.replaces) {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// The version of a chart on a cluster has a part of its digest where it comes from a registry.
func TestChangesOfAFeature(t *testing.T) {
	for _, test := range []struct {
		installed, declared string
		want                bool
	}{
		{"6.9.2+1f2e3d4c5b6a", "6.9.2", false},
		{"1.3.0+build.7", "1.3.0_build.7", false},
		{"1.19.1", "v1.19.1", false},
		{"6.9.2+1f2e3d4c5b6a", "6.9.3", true},
		{"", "6.9.3", false},
	} {
		c := Component{Type: TypeFeature, Installed: test.installed, Declared: test.declared}
		if got := c.Changes(); got != test.want {
			t.Errorf("%+v: %t", test, got)
		}
	}
}

// An upgrade gives a version to the providers that fleet.yaml lists without one: the version that runs, or else the newest.
func TestUndeclaredProviders(t *testing.T) {
	part := func(name, installed, declared, newest string) Component {
		return Component{Name: name, Type: string(releases.Infrastructure), Installed: installed, Declared: declared, Newest: newest}
	}
	p := &Plan{Components: []Component{
		part("aws", "", "", "v2.13.0"), part("azure", "v1.20.0", "", "v1.20.0"), part("docker", "", "v1.14.2", "v1.14.2"),
		part("gcp", "v1.12.0", "", "v1.13.1"), part("hetzner", "v1.1.0", "", ""), part("vsphere", "", "", ""),
		part("unlisted", "v1.0.0", "", ""),
		{Name: "aws", Type: TypeFeature, Newest: "1.0.0"},
	}}
	var listed []v1alpha1.Provider
	for _, name := range []string{"aws", "azure", "docker", "gcp", "hetzner", "vsphere"} {
		listed = append(listed, v1alpha1.Provider{Name: name})
	}
	infrastructure := v1alpha1.ComponentType(v1alpha1.ProviderInfrastructure)
	want := []fleetrepo.Version{
		{Name: "aws", Type: infrastructure, To: "v2.13.0"},
		{Name: "azure", Type: infrastructure, To: "v1.20.0"},
		{Name: "hetzner", Type: infrastructure, To: "v1.1.0"},
	}
	if got := p.undeclared(listed); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
