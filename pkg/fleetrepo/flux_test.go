package fleetrepo

import (
	"os"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// withFlux returns the repo with two networks and with management clusters that init has made, so that new clusters get their Flux.
func withFlux(t testing.TB) *Repo {
	t.Helper()
	r := open(t)
	for i := range r.Fleet.Spec.ManagementClusters {
		m := &r.Fleet.Spec.ManagementClusters[i]
		write(t, r.Dir, m.Layout().SyncFile(), []byte(syncFile))
		write(t, r.Dir, path.Join(m.Dir(), layout.FluxDir, layout.ComponentsFile),
			[]byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n"))
	}
	for _, network := range []string{"calico", "cilium"} {
		write(t, r.Dir, path.Join(layout.CNIDir(network), kustomizationFile), []byte("resources: []\n"))
	}
	return reopen(t, r.Dir)
}

// withCluster adds a cluster of a flavour with the values of the chart's example.
func withCluster(t testing.TB, r *Repo, o AddOptions) *Repo {
	t.Helper()
	o.Values = must(scaffold.ExampleValues(o.Flavour, "v1.36.3"))
	e, err := r.Add(o)
	_, r = done(t, r, e, err)
	return r
}

// fluxOf returns how a cluster runs Flux according to its flux.yaml.
func fluxOf(t testing.TB, r *Repo, name string) scaffold.ClusterOptions {
	t.Helper()
	c, err := r.find(name)
	if err != nil {
		t.Fatal(err)
	}
	there, err := r.generated(path.Join(path.Dir(c.File), layout.FluxFile))
	if err != nil {
		t.Fatal(err)
	}
	if there == nil {
		return scaffold.ClusterOptions{Flux: scaffold.FluxNone}
	}
	return fluxOptions(c.at, c.Environment, c.Name, there)
}

// What SetFlux is not told stays as it is, whatever a new cluster of the flavour would get. A changed network is no surprise.
func TestSetFluxKeepsTheRest(t *testing.T) {
	type settings struct {
		Flux scaffold.FluxMode
		CNI  string
	}
	for name, tc := range map[string]struct {
		flavour   string
		has, give settings
		// prefers is the network that the chart names for new clusters by now.
		prefers string
		want    settings
		note    string
	}{
		"the mode, of a network": {
			"docker",
			settings{"remote", "calico"},
			settings{"", "cilium"},
			"",
			settings{"remote", "cilium"},
			"The network of cluster edge changes from calico to cilium.",
		},
		"the network, of a mode":  {"docker", settings{"own", "cilium"}, settings{"remote", ""}, "calico", settings{"remote", "cilium"}, ""},
		"the network, of several": {"docker", settings{"own", "cilium"}, settings{"remote", ""}, "", settings{"remote", "cilium"}, ""},
		"a network that the flavour does not need": {
			"aws-eks", settings{"own", "cilium"}, settings{"remote", ""}, "", settings{"remote", "cilium"}, "",
		},
		"no network, of a flavour that does not need one": {
			"aws-eks", settings{"remote", ""}, settings{"own", ""}, "", settings{"own", ""}, "",
		},
		"all of it": {"docker", settings{"remote", "cilium"}, settings{"", ""}, "calico", settings{"remote", "cilium"}, ""},
		"nothing, of a cluster without Flux": {
			"docker", settings{"none", ""}, settings{"", ""}, "calico", settings{"own", "calico"}, "",
		},
		"nothing, of a Flux that goes": {"docker", settings{"own", "cilium"}, settings{"none", ""}, "", settings{"none", ""}, "flux uninstall"},
	} {
		t.Run(name, func(t *testing.T) {
			r := withCluster(t, withFlux(t), AddOptions{
				Name: "edge", Environment: "dev", Flavour: tc.flavour, Flux: tc.has.Flux, CNI: tc.has.CNI,
			})
			if tc.prefers != "" {
				e, err := r.AddNetwork(tc.prefers, NetworkOptions{Flavours: []string{tc.flavour}})
				_, r = done(t, r, e, err)
			}
			e, err := r.SetFlux("edge", tc.give.Flux, tc.give.CNI)
			_, r = done(t, r, e, err)
			got := fluxOf(t, r, "edge")
			if diff := cmp.Diff(tc.want, settings{got.Flux, got.CNI}); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if notes := strings.Join(e.Notes, "\n"); tc.note == "" && strings.Contains(notes, "network") || !strings.Contains(notes, tc.note) {
				t.Errorf("the edit says %q", e.Notes)
			}
		})
	}
}

// The apps of a cluster without a Flux of its own follow the environment's channel: from the start, after a change of its Flux, and back to
// the branch with its environment.
func TestRemoteFluxFollowsTheChannel(t *testing.T) {
	r := withFlux(t)
	e, err := r.AddChannel(releaseChannel, []string{"prod"})
	_, r = done(t, r, e, err)
	e, err = r.Promote("release", "v0.1.0", "", os.DirFS(r.Dir))
	_, r = done(t, r, e, err)
	add := func(name, environment string, mode scaffold.FluxMode) {
		r = withCluster(t, r, AddOptions{Name: name, Environment: environment, Flavour: "docker", Flux: mode, CNI: "cilium"})
	}
	follows := func(name string) string {
		return path.Base(fluxOf(t, r, name).SourceDir)
	}
	add("new", "prod", scaffold.FluxRemote)
	add("changed", "prod", scaffold.FluxOwn)
	e, err = r.SetFlux("changed", scaffold.FluxRemote, "")
	_, r = done(t, r, e, err)
	for _, name := range []string{"new", "changed"} {
		if got := follows(name); got != "release" {
			t.Errorf("the apps of cluster %s follow %s", name, got)
		}
	}
	add("moved", "dev", scaffold.FluxRemote)
	before := fluxOf(t, r, "moved")
	for _, channel := range []string{"release", "main"} {
		r.Tagged = taggedAsNow(r)
		e, err = r.SetEnvironment("dev", EnvironmentOptions{Channel: channel})
		_, r = done(t, r, e, err)
		if got := follows("moved"); channel == "release" && got != "release" {
			t.Errorf("the apps of a moved cluster follow %s", got)
		}
	}
	if diff := cmp.Diff(before, fluxOf(t, r, "moved")); diff != "" {
		t.Errorf("there and back (-want +got)\n%s", diff)
	}
}
