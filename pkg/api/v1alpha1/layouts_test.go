package v1alpha1

import (
	"strings"
	"testing"
)

// Each cloud of a management cluster has its own folders. The clusters of the first provider are in the home, whatever the home is called.
func TestLayouts(t *testing.T) {
	infra := func(names ...string) (all []Provider) {
		for _, name := range names {
			all = append(all, Provider{Name: name})
		}
		return all
	}
	other := Provider{Name: "kubeadm", Type: ProviderBootstrap}
	for name, tc := range map[string]struct {
		all  []ManagementCluster
		want string // the folders of each management cluster
	}{
		"no provider":     {[]ManagementCluster{{Name: "a", Providers: []Provider{other}}}, "providers/none/v1"},
		"one cloud":       {[]ManagementCluster{{Name: "a", Providers: append(infra("docker"), other)}}, "providers/docker/v1"},
		"two clouds":      {[]ManagementCluster{{Name: "a", Providers: infra("docker", "aws")}}, "providers/docker/v1 providers/aws/v1"},
		"its home's name": {[]ManagementCluster{{Name: "a", Cloud: "eu", Providers: infra("docker")}}, "providers/eu/v1"},
		"and a cloud": {
			[]ManagementCluster{{Name: "a", Cloud: "eu", Providers: infra("docker", "aws")}}, "providers/eu/v1 providers/aws/v1",
		},
		"the second's": {
			[]ManagementCluster{{Name: "a", Cloud: "aws", Providers: infra("docker", "aws")}}, "providers/aws/v1 providers/docker/v1",
		},
		"listed twice": {[]ManagementCluster{{Name: "a", Providers: infra("docker", "aws", "aws")}}, "providers/docker/v1 providers/aws/v1"},
		"its generation's": {
			[]ManagementCluster{{Name: "a", Generation: "v2", Providers: infra("docker", "aws")}}, "providers/docker/v2 providers/aws/v2",
		},
		"another's home": {
			[]ManagementCluster{{Name: "a", Providers: infra("docker", "aws")}, {Name: "b", Providers: infra("aws")}},
			"providers/docker/v1, providers/aws/v1",
		},
		"another's home of another generation": {
			[]ManagementCluster{{Name: "a", Providers: infra("docker", "aws")}, {Name: "b", Generation: "v2", Providers: infra("aws")}},
			"providers/docker/v1 providers/aws/v1, providers/aws/v2",
		},
		"the first of two has it": {
			[]ManagementCluster{{Name: "a", Providers: infra("docker", "aws")}, {Name: "b", Providers: infra("azure", "aws")}},
			"providers/docker/v1 providers/aws/v1, providers/azure/v1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Fleet{Spec: FleetSpec{ManagementClusters: tc.all}}
			folders := func() string {
				var got []string
				for i := range f.Spec.ManagementClusters {
					var dirs []string
					m := &f.Spec.ManagementClusters[i]
					for _, l := range f.Layouts(m) {
						dirs = append(dirs, l.Owned())
						if l.Management() != m.Dir() {
							t.Errorf("the management cluster's own folder of %s is %s", l.Owned(), l.Management())
						}
						if at := LayoutOf(f.Layouts(m), l.Cluster("dev", "x")+"/cluster.yaml"); at != l {
							t.Errorf("a cluster of %+v is of %+v", l, at)
						}
					}
					got = append(got, strings.Join(dirs, " "))
				}
				return strings.Join(got, ", ")
			}
			if got := folders(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			SetDefaults(f, Defaults{})
			if got := folders(); got != tc.want {
				t.Errorf("with defaults: got %s, want %s", got, tc.want)
			}
		})
	}
	f := &Fleet{Spec: FleetSpec{ManagementClusters: []ManagementCluster{{Name: "a", Providers: append(infra("docker", "aws"), other)}}}}
	for provider, want := range map[string]string{"aws": "aws", "docker": "docker", "": "docker", "azure": "docker", "kubeadm": "docker"} {
		if got := f.LayoutFor(&f.Spec.ManagementClusters[0], provider).Cloud; got != want {
			t.Errorf("a cluster of %q stands in %s, want %s", provider, got, want)
		}
	}
}
