package fleetrepo

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// A name that is given twice in flags counts once: in the summary, and in what is written.
func TestNamesGivenTwice(t *testing.T) {
	r := New(t.TempDir(), &v1alpha1.Fleet{
		Metadata: v1alpha1.Metadata{Name: "acme"},
		Spec: v1alpha1.FleetSpec{
			Environments: []v1alpha1.Environment{{Name: "dev"}, {Name: "prod"}},
			ManagementClusters: []v1alpha1.ManagementCluster{{
				Name: "mgmt", Cloud: "aws", Generation: "v1", Providers: []v1alpha1.Provider{{Name: "aws", Type: v1alpha1.ProviderInfrastructure}},
			}},
		},
	})
	twice := []string{"dev", "dev"}
	feature, err := r.AddFeature("logs")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := feature.Changes.Apply(r.Dir); err != nil {
		t.Fatal(err)
	}
	for name, add := range map[string]func() (*Edit, error){
		"feature": func() (*Edit, error) {
			return r.EnableFeature("logs", FeatureOptions{Environments: twice})
		},
		"tenant": func() (*Edit, error) {
			return r.AddTenant("shop", TenantOptions{Environments: twice})
		},
		"identity": func() (*Edit, error) {
			return r.AddIdentity("mgmt", scaffold.IdentityOptions{
				Name: "st", Provider: "aws", Environments: twice, RoleARN: "arn:aws:iam::111122223333:role/fleet",
			})
		},
	} {
		e, err := add()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if strings.Contains(e.Summary, "dev, dev") {
			t.Errorf("%s: %s", name, e.Summary)
		}
		for _, f := range e.Changes.Files() {
			if n := strings.Count(string(f.Content), "- dev\n"); n > 1 {
				t.Errorf("%s: %s names dev %d times:\n%s", name, f.Path, n, f.Content)
			}
		}
	}
}
