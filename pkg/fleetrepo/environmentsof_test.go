package fleetrepo

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
)

// A change concerns the environments whose files it changes. A change of a shared file concerns all environments.
func TestEnvironmentsOf(t *testing.T) {
	r := New(t.TempDir(), &v1alpha1.Fleet{Spec: v1alpha1.FleetSpec{
		Environments:       []v1alpha1.Environment{{Name: "dev"}, {Name: "prod"}},
		ManagementClusters: []v1alpha1.ManagementCluster{{Name: "m", Cloud: "aws", Generation: "v1"}},
	}})
	for name, tc := range map[string]struct{ files, want []string }{
		"nothing":            {nil, []string{}},
		"a cluster":          {[]string{"providers/aws/v1/clusters/prod/shop/cluster.yaml"}, []string{"prod"}},
		"another":            {[]string{"providers/aws/v1/clusters/production/shop/cluster.yaml"}, []string{}},
		"both":               {[]string{"providers/aws/v1/clusters/prod/a", "providers/aws/v1/clusters/dev/a"}, []string{"dev", "prod"}},
		"a chart":            {[]string{"charts/docker/values.yaml"}, []string{"dev", "prod"}},
		"a feature":          {[]string{"features/web/namespaced/values.yaml"}, []string{"dev", "prod"}},
		"management cluster": {[]string{"providers/aws/v1/mgmt/x.yaml", "fleet.yaml", "README.md"}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, r.EnvironmentsOf(tc.files)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
