package fleetrepo

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/render/rendertest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// No command about a cluster loses a comment or changes anything else, and the opposite command restores the file.
func TestEditsOfRandomClusters(t *testing.T) {
	randomFleets(t, false, func(f *random) {
		for _, c := range f.Clusters {
			for _, test := range []func(c rendertest.RandomCluster, name string, before *declared){
				f.poolComesAndGoes, f.controlPlaneGrowsAndShrinks, f.removalIsCancelled, f.pauses, f.poolsAreScaled, f.upgrades, f.poolsGo,
			} {
				name := c.Environment + "/" + c.Name
				before := must(f.r.find(name))
				test(c, name, before)
				write(f, f.r.Dir, c.File, before.src)
				if f.Failed() {
					return
				}
			}
		}
	})
}

func (f *random) poolComesAndGoes(c rendertest.RandomCluster, name string, before *declared) {
	three, nine := 3, 9
	more := maps.Clone(c.Size)
	if c.Label != "" {
		more["labels"] = map[string]any{c.Label: "no"}
	}
	for _, opts := range []PoolOptions{{Replicas: &three, Values: c.Size}, {Min: &three, Max: &nine, Values: more}} {
		about := touched{}
		if pools := before.value("pools"); len(before.Pools) == 0 || pools.Style&yaml.FlowStyle != 0 {
			about.changed = []yamledit.Path{values("pools")}
		}
		e, err := f.r.AddPool(name, "added", opts)
		if !f.edit(c, "add a pool", about, e, err) {
			return
		}
		after := must(f.r.find(name))
		if len(after.Pools) != len(before.Pools)+1 {
			f.Fatalf("pools are %+v", after.Pools)
		}
		about = touched{gone: []yamledit.Path{values("pools", len(before.Pools))}}
		if len(before.Pools) == 0 {
			about.changed = []yamledit.Path{values("pools")}
		}
		e, err = f.r.RemovePool(name, "added")
		f.edit(c, "remove it again", about, e, err)
		f.same(c, "a pool came and went", before.src)
	}
}

func (f *random) controlPlaneGrowsAndShrinks(c rendertest.RandomCluster, name string, before *declared) {
	if schemaAt(must(f.r.chart(c.Flavour)).schema, yamledit.Path{"controlPlane", "replicas"}) == nil {
		return
	}
	about := touched{changed: []yamledit.Path{values("controlPlane", "replicas")}}
	e, err := f.r.ScaleControlPlane(name, 7)
	if !f.edit(c, "scale the control plane", about, e, err) || before.ControlPlane == nil {
		return
	}
	e, err = f.r.ScaleControlPlane(name, *before.ControlPlane)
	f.edit(c, "scale it back", about, e, err)
	f.same(c, "the control plane grew and shrank", before.src)
}

func (f *random) removalIsCancelled(c rendertest.RandomCluster, name string, before *declared) {
	if before.Paused {
		e, err := f.r.Pause(name, false)
		if !f.edit(c, "resume", touched{gone: []yamledit.Path{{"spec", "suspend"}}}, e, err) {
			return
		}
		before = must(f.r.find(name))
	}
	first, err := f.r.Remove(name, false)
	if err != nil {
		first = &Removal{}
	}
	prune := yamledit.Path{"metadata", "annotations", pruneAnnotation}
	if !f.edit(c, "begin to remove", touched{changed: []yamledit.Path{prune}}, &first.Edit, err) {
		return
	}
	e, err := f.r.CancelRemove(name)
	f.edit(c, "cancel it", touched{
		changed: []yamledit.Path{prune}, gone: []yamledit.Path{
			{"metadata", "annotations", removeAnnotation},
			{"spec", "uninstall"},
			{"spec", "postRenderers"},
		},
	}, e, err)
	f.same(c, "a removal was cancelled", before.src)
}

func (f *random) pauses(c rendertest.RandomCluster, name string, before *declared) {
	suspend := touched{gone: []yamledit.Path{{"spec", "suspend"}}}
	e, err := f.r.Pause(name, !before.Paused)
	if before.Paused {
		f.edit(c, "resume", suspend, e, err)
		return
	}
	if !f.edit(c, "pause", touched{}, e, err) {
		return
	}
	e, err = f.r.Pause(name, false)
	f.edit(c, "resume", suspend, e, err)
	f.same(c, "it was paused", before.src)
}

func (f *random) poolsAreScaled(c rendertest.RandomCluster, name string, before *declared) {
	six, nine := 6, 9
	for i, pool := range before.Pools {
		at := func(field string) yamledit.Path { return values("pools", i, field) }
		limits, size := []yamledit.Path{at("min"), at("max")}, []yamledit.Path{at("replicas")}
		there, back := PoolOptions{Replicas: &six}, PoolOptions{Replicas: pool.Replicas, Min: pool.Min, Max: pool.Max}
		about := touched{changed: size}
		if pool.Replicas == nil {
			there, about = PoolOptions{Min: &six, Max: &nine}, touched{changed: limits}
		}
		e, err := f.r.ScalePool(name, pool.Name, there)
		if !f.edit(c, "scale a pool", about, e, err) {
			continue
		}
		e, err = f.r.ScalePool(name, pool.Name, back)
		f.edit(c, "scale it back", about, e, err)
		f.same(c, "a pool grew and shrank", before.src)
		about = touched{gone: size, changed: limits}
		there = PoolOptions{Min: &six, Max: &nine}
		if pool.Replicas == nil {
			there, about = PoolOptions{Replicas: &six}, touched{gone: limits, changed: size}
		}
		e, err = f.r.ScalePool(name, pool.Name, there)
		f.edit(c, "scale a pool otherwise", about, e, err)
		write(f, f.r.Dir, c.File, before.src)
	}
}

func (f *random) upgrades(c rendertest.RandomCluster, name string, before *declared) {
	const version = "v1.36.9"
	var pools []yamledit.Path
	for i := range before.Pools {
		pools = append(pools, values("pools", i, "kubernetesVersion"))
	}
	e, err := f.r.Upgrade(name, UpgradeOptions{Version: version})
	if !f.edit(c, "upgrade the control plane", touched{changed: append(slices.Clone(pools), values("kubernetesVersion"))}, e, err) {
		return
	}
	e, err = f.r.Upgrade(name, UpgradeOptions{Version: version})
	f.edit(c, "upgrade the pools", touched{gone: pools}, e, err)
}

func (f *random) poolsGo(c rendertest.RandomCluster, name string, before *declared) {
	for _, pool := range before.Pools {
		about := touched{gone: []yamledit.Path{values("pools", 0)}}
		if len(must(f.r.find(name)).Pools) == 1 {
			about.changed = []yamledit.Path{values("pools")}
		}
		e, err := f.r.RemovePool(name, pool.Name)
		if !f.edit(c, "remove a pool", about, e, err) {
			return
		}
	}
}

// done writes the changes of an edit.
func (f *random) done(e *Edit, err error) {
	f.Helper()
	_, f.r = done(f, f.r, e, err)
}

// tree returns the text of each file.
func (f *random) tree() map[string]string {
	files := map[string]string{}
	err := filepath.WalkDir(f.r.Dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(f.r.Dir, name)
		if err != nil || strings.HasPrefix(filepath.ToSlash(relative), layout.ChartsDir+"/") {
			return err
		}
		if entry.IsDir() {
			files[relative+"/"] = "" // what is left behind is seen
			return nil
		}
		content, err := os.ReadFile(name)
		files[relative] = string(content)
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	return files
}

// A cluster, a tenant, a feature or the Flux of a cluster that is added and removed again leaves every file as it was.
func TestAddThenRemoveInRandomFleets(t *testing.T) {
	randomFleets(t, true, func(f *random) {
		before := f.tree()
		same := func(what string) {
			f.Helper()
			if diff := cmp.Diff(before, f.tree()); diff != "" {
				f.Errorf("%s came and went (-want +got)\n%s", what, diff)
			}
		}
		for i, flavour := range rendertest.Flavours {
			if i%3 != f.seed%3 { // the other fleets have the others: each change is flushed to the disk
				continue
			}
			env := f.Environments[i%len(f.Environments)]
			comeAndGo := func() {
				f.done(f.r.Add(AddOptions{Name: "added", Environment: env, Flavour: flavour, Values: must(scaffold.ExampleValues(flavour, "v1.36.3"))}))
				for range 2 {
					removal, err := f.r.Remove("added", false)
					if err != nil {
						f.Fatal(err)
					}
					f.done(&removal.Edit, nil)
				}
			}
			if m := must(f.r.managementClusterFor("", flavour, f.r.makerOf(flavour))); !f.r.uses(f.r.layoutFor(m, env, flavour), env) {
				comeAndGo() // the folder of the cloud stays, and what applies it
				before = f.tree()
			}
			comeAndGo()
			same("a cluster of flavour " + flavour)
		}
		for _, environments := range [][]string{nil, f.Environments[1:]} {
			f.done(f.r.AddTenant("added", TenantOptions{Environments: environments}))
			f.done(f.r.RemoveTenant("added", environments))
			same("a tenant")
		}
		for _, c := range f.Clusters {
			name := c.Environment + "/" + c.Name
			if c.Flavour != "in-memory" && !f.r.exists(strings.TrimSuffix(c.File, clusterFile)+layout.FluxFile) {
				mode := []scaffold.FluxMode{scaffold.FluxOwn, scaffold.FluxRemote}[f.seed%2]
				f.done(f.r.SetFlux(name, mode, ""))
				f.done(f.r.SetFlux(name, scaffold.FluxNone, ""))
				same("the Flux of a cluster")
			}
		}
		f.done(f.r.AddFeature("added"))
		before = f.tree()
		for _, opts := range []FeatureOptions{{}, {Environments: f.Environments[:1]}, {Clusters: []string{f.Clusters[0].Name}}} {
			f.done(f.r.EnableFeature("added", opts))
			f.done(f.r.DisableFeature("added", opts))
			same("a feature")
		}
	})
}

// A new environment adds lines to fleet.yaml and to the lists that people have written, and changes nothing else in these files.
func TestAddEnvironmentToRandomFleets(t *testing.T) {
	randomFleets(t, false, func(f *random) {
		before := f.tree()
		f.done(f.r.AddEnvironment("added", EnvironmentOptions{}))
		after := f.tree()
		for name, content := range before {
			if !isWithin(content, after[name]) {
				f.Errorf("%s: more than an insertion (-want +got)\n%s", name, cmp.Diff(content, after[name]))
			}
		}
		if !slices.Contains(f.r.EnvironmentNames(), "added") {
			f.Error("there is no environment added")
		}
	})
}

// isWithin tells whether a text is another text without one part.
func isWithin(text, longer string) bool {
	same := 0
	for same < len(text) && same < len(longer) && text[same] == longer[same] {
		same++
	}
	return len(longer) >= len(text) && strings.HasSuffix(longer, text[same:])
}
