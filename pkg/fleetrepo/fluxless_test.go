package fleetrepo

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// What needs a Flux on the cluster itself is refused where no cluster has one, and is a note where some have none. Flux's CRDs may also
// come from the repo.
func TestFluxOnTheClusterItself(t *testing.T) {
	chart := scaffold.FeatureChart{URL: "oci://registry.example.com/charts/web", Version: "1.2.0"}
	web := scaffold.AppSource{URL: "https://github.com/acme/web"}
	inDev, onEdge := FeatureOptions{Environments: []string{"dev"}}, FeatureOptions{Clusters: []string{"edge"}}
	enable := func(feature string, o FeatureOptions) func(r *Repo) (*Edit, error) {
		return func(r *Repo) (*Edit, error) { return r.EnableFeature(feature, o) }
	}
	tenant := func(r *Repo) (*Edit, error) {
		return r.AddTenant("web", TenantOptions{Environments: []string{"dev"}, Source: &web})
	}
	const remote, own = "metadata: {name: x-apps, labels: {fleetctl.dev/flux: apps}}\n", "metadata: {name: x-flux, labels: {fleetctl.dev/flux: x}}\n"
	const dev, operator = "providers/docker/v1/clusters/dev/", "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux}\n"
	for name, tc := range map[string]struct {
		files           map[string]string
		edit            func(r *Repo) (*Edit, error)
		err, hint, note string
	}{
		"all of an environment": {
			map[string]string{dev + "edge/flux.yaml": remote},
			enable("web", inDev),
			"feature web needs a Flux on the cluster itself, and cluster edge of dev has none", "`fleetctl cluster flux dev/edge --flux own`", "",
		},
		"some of an environment": {
			map[string]string{dev + "edge/flux.yaml": remote, dev + "shop/flux.yaml": own},
			enable("web", inDev), "", "",
			"These clusters of dev cannot run it, because they have no Flux of their own: edge.",
		},
		"a single cluster": {
			nil, enable("web", onEdge), "", "", "Cluster edge runs no Flux of its own yet, which feature web needs: `fleetctl cluster flux dev/edge",
		},
		"a single cluster through the management cluster": {
			map[string]string{dev + "edge/flux.yaml": remote}, enable("web", onEdge), "cluster edge has none", "`fleetctl cluster flux dev/edge --flux own`", "",
		},
		"a single cluster with one":  {map[string]string{dev + "edge/flux.yaml": own}, enable("web", onEdge), "", "", ""},
		"the operator brings it":     {map[string]string{dev + "edge/namespaced/flux.yaml": operator}, enable("web", onEdge), "", "", ""},
		"a feature of plain objects": {map[string]string{dev + "edge/flux.yaml": remote}, enable("plain", inDev), "", "", ""},
		"a feature of CRDs": {
			map[string]string{"features/plain/non-namespaced/crds.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" +
				"metadata: {name: helmreleases.helm.toolkit.fluxcd.io}\n"}, enable("plain", onEdge), "", "", "",
		},
		"an application": {
			map[string]string{dev + "edge/flux.yaml": remote}, tenant, "application web needs a Flux on the cluster itself", "--environment", "",
		},
		"an application of some": {
			map[string]string{dev + "edge/flux.yaml": remote, dev + "shop/flux.yaml": own}, tenant, "", "", "have no Flux of their own: edge.",
		},
		"no cluster gets it": {nil, tenant, "", "", "No cluster of dev runs Flux"},
	} {
		t.Run(name, func(t *testing.T) {
			r := cloudsRepo(t, cloudsFleet)
			for _, cluster := range []string{"edge", "shop"} {
				e, err := r.Add(AddOptions{Name: cluster, Environment: "dev", Flavour: "docker"})
				_, r = done(t, r, e, err)
			}
			e, err := r.AddFeatureChart("web", chart, nil)
			_, r = done(t, r, e, err)
			e, err = r.AddFeature("plain")
			_, r = done(t, r, e, err)
			for file, content := range tc.files {
				write(t, r.Dir, file, []byte(content))
			}
			e, err = tc.edit(r)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || !strings.Contains(diag.Hint(err), tc.hint) {
					t.Errorf("got %v (%s)", err, diag.Hint(err))
				}
				return
			}
			_, _ = done(t, r, e, err)
			notes := strings.Join(e.Notes, "\n")
			if !strings.Contains(notes, tc.note) || tc.note == "" && strings.Contains(notes, "Flux of their own") {
				t.Errorf("it says %q", e.Notes)
			}
		})
	}
}

// A cluster that gets no Flux of its own is told what of its environment needs one.
func TestClusterWithoutWhatItsEnvironmentNeeds(t *testing.T) {
	r := cloudsRepo(t, cloudsFleet)
	e, err := r.AddFeatureChart("web", scaffold.FeatureChart{URL: "oci://registry.example.com/charts/web", Version: "1.2.0"}, nil)
	_, r = done(t, r, e, err)
	e, err = r.EnableFeature("web", FeatureOptions{})
	_, r = done(t, r, e, err)
	e, err = r.AddTenant("shop", TenantOptions{Source: &scaffold.AppSource{URL: "https://github.com/acme/web"}})
	_, r = done(t, r, e, err)
	e, err = r.Add(AddOptions{Name: "edge", Environment: "dev", Flavour: "docker", Flux: scaffold.FluxRemote})
	_, r = done(t, r, e, err)
	const says = "It cannot run what needs a Flux on the cluster itself, of what dev has: feature web, application shop."
	if !strings.Contains(strings.Join(e.Notes, "\n"), says) {
		t.Errorf("it says %q", e.Notes)
	}
	e, err = r.Add(AddOptions{Name: "sim", Environment: "dev", Flavour: "in-memory"})
	if done(t, r, e, err); strings.Contains(strings.Join(e.Notes, "\n"), "itself") {
		t.Errorf("it says %q", e.Notes)
	}
}
