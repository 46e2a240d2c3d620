package fleetrepo

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// twoShops returns the repo with a second cluster that is called shop, on another management cluster. Both have the network cilium.
func twoShops(t testing.TB) *Repo {
	t.Helper()
	r := withFlux(t)
	shop, err := r.read("providers/aws/v1/clusters/prod/shop/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	write(t, r.Dir, "providers/docker/v1/clusters/dev/shop/cluster.yaml", shop)
	for _, name := range []string{"dev/shop", "prod/shop"} {
		c, err := r.find(name)
		if err != nil {
			t.Fatal(err)
		}
		flux, err := fluxFile(scaffold.ClusterOptions{
			Layout: c.at, Environment: c.Environment, Name: "shop", Flavour: "any", Flux: scaffold.FluxRemote, CNI: "cilium",
		})
		if err != nil {
			t.Fatal(err)
		}
		write(t, r.Dir, path.Join(path.Dir(c.File), layout.FluxFile), flux)
	}
	return reopen(t, r.Dir)
}

// Every name to choose, and every name in what an edit says, is one that commands take.
func TestNamesThatCommandsTake(t *testing.T) {
	r := twoShops(t)
	if diff := cmp.Diff([]string{"demo", "dev/shop", "prod/shop"}, r.Choices()); diff != "" {
		t.Errorf("to choose (-want +got)\n%s", diff)
	}
	clusters, problems, err := r.Clusters()
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	for _, name := range []string{"shop", "other"} {
		clusters = append(clusters, Cluster{Name: name, Namespace: "teams", Manifests: true})
	}
	var names []string
	for _, c := range clusters {
		names = append(names, Called(clusters)(c))
	}
	if diff := cmp.Diff([]string{"demo", "dev/shop", "prod/shop", "teams/shop", "other"}, names); diff != "" {
		t.Errorf("of all clusters (-want +got)\n%s", diff)
	}
	for name, tc := range map[string]struct {
		edit func(cluster string) (*Edit, error)
		says string
	}{
		"the next step of an upgrade": {
			func(cluster string) (*Edit, error) { return r.Upgrade(cluster, UpgradeOptions{Version: "v1.37.0"}) },
			"fleetctl cluster upgrade %s --version v1.37.0",
		},
		"an upgrade that is too far": {
			func(cluster string) (*Edit, error) { return r.Upgrade(cluster, UpgradeOptions{Version: "v1.39.0"}) },
			"fleetctl cluster upgrade %s --version v1.37.0",
		},
		"a network in use": {
			func(string) (*Edit, error) { return r.RemoveNetwork("cilium") }, "fleetctl cluster flux dev/shop --cni",
		},
	} {
		for _, cluster := range []string{"dev/shop", "prod/shop"} {
			e, err := tc.edit(cluster)
			said := diag.Hint(err)
			if err == nil {
				said = strings.Join(e.Notes, "\n")
			}
			want := tc.says
			if strings.Contains(want, "%") {
				want = fmt.Sprintf(want, cluster)
			}
			if !strings.Contains(said, want) {
				t.Errorf("%s: %v says %q, want %s", name, err, said, want)
			}
		}
	}
}

// After its second step, a removal leaves nothing in Git that says which management cluster had the cluster.
func TestFormerManagers(t *testing.T) {
	r := twoShops(t)
	for given, want := range map[string][]string{
		"gone": {"laptop", "cloud"}, "dev/gone": {"laptop", "cloud"}, "shop": nil, "prod/shop": nil, "demo": nil, "prod/demo": {"cloud"},
	} {
		if got := r.FormerManagers(given); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", given, got, want)
		}
	}
}
