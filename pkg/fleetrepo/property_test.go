package fleetrepo

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render/rendertest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

var seeds = flag.Int("seeds", 4, "how many random fleets the properties are held against")

// random is a random fleet on disk.
type random struct {
	testing.TB
	*rendertest.Fleet
	seed int
	r    *Repo
}

// randomFleets runs a test for each of some fleets. Its name says the seed. Without charts in it, a fleet has those that fleetctl brings along.
func randomFleets(t *testing.T, charts bool, test func(f *random)) {
	t.Helper()
	for seed := range uint64(*seeds) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			fleet, err := rendertest.Random(seed)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			for name, content := range fleet.Files {
				if charts || !strings.HasPrefix(name, scaffold.ChartsDir+"/") {
					write(t, dir, name, content)
				}
			}
			test(&random{TB: t, Fleet: fleet, seed: int(seed), r: reopen(t, dir)}) //nolint:gosec // a small number
		})
	}
}

// touched are the places of a file that an edit is about: values that it changes, and fields and items that it takes out with their lines.
type touched struct{ changed, gone []yamledit.Path }

// edit makes an edit of a cluster's file, judges what it does to the rest of the file, and writes it. Not ok is one that is refused because
// only the file's author can make it.
func (f *random) edit(c rendertest.RandomCluster, what string, about touched, e *Edit, err error) (ok bool) {
	f.Helper()
	if err != nil {
		if c.Aliases && errors.Is(err, yamledit.ErrCannotEdit) {
			return false
		}
		f.Fatalf("%s: %v (%s) in\n%s", what, err, diag.Hint(err), must(f.r.read(c.File)))
	}
	declared := must(f.r.find(c.Environment + "/" + c.Name))
	for _, file := range e.Changes.Files() {
		if file.Path != c.File {
			f.Fatalf("%s changes %s as well", what, file.Path)
		}
		f.judge(what, declared, about, file.Content)
		write(f, f.r.Dir, file.Path, file.Content)
	}
	return true
}

// judge fails the test where an edit lost a comment, or a line that it is not about.
func (f *random) judge(what string, before *declared, about touched, after []byte) {
	f.Helper()
	fail := func(format string, args ...any) {
		f.Helper()
		f.Errorf("%s: %s\n-- before\n%s\n-- after\n%s", what, fmt.Sprintf(format, args...), before.src, after)
	}
	lines := linesOf(before.src)
	mayChange, mayGo := map[int]bool{}, map[int]bool{}
	for _, path := range about.changed {
		from, to := extent(before.node, lines, path)
		if n := yamledit.Find(before.node, path...); n != nil && n.Style&yaml.FlowStyle == 0 {
			to = from
		} else if n != nil {
			to = deepest(n)
		}
		for i := from; i <= to; i++ {
			mayChange[i] = true
		}
	}
	for _, path := range about.gone {
		from, to := extent(before.node, lines, path)
		for i := from; i > 0 && i <= to; i++ {
			mayGo[i] = true
		}
	}
	for i := range lines { // what stands below a field behind a dash moves there
		if mayGo[i+1] && strings.HasPrefix(strings.TrimLeft(lines[i], " "), "-") {
			below := i + 1
			for ; below < len(lines) && (mayGo[below+1] || strings.TrimSpace(lines[below]) == ""); below++ {
				mayGo[below+1] = true
			}
			mayChange[below+1] = true
		}
	}
	for i := len(lines); i > 0 && (mayGo[i] || strings.TrimSpace(lines[i-1]) == ""); i-- { // empty lines above the end
		mayGo[i] = true
	}
	left := linesOf(after)
	for i, line := range lines {
		if note := noteIn(line); note != "" && !mayGo[i+1] && !bytes.Contains(after, []byte(note)) {
			fail("the comment %q is lost", note)
		}
		if mayGo[i+1] || mayChange[i+1] {
			continue
		}
		at := slices.Index(left, line)
		if at < 0 {
			fail("line %d, %q, is lost, changed or elsewhere", i+1, line)
			return
		}
		left = left[at+1:]
	}
	if ended := func(b []byte) bool { return bytes.HasSuffix(b, []byte("\n")) }; ended(before.src) != ended(after) {
		fail("the end of the last line comes or goes")
	}
	if crlf := bytes.Contains(before.src, []byte("\r\n")); crlf != bytes.Contains(after, []byte("\r\n")) || crlf && bytes.Count(after, []byte("\n")) != bytes.Count(after, []byte("\r\n")) {
		fail("the ends of lines differ")
	}
}

// linesOf are the lines of a text; the last one has an end whether or not the file has it.
func linesOf(src []byte) []string {
	text := string(src)
	if !strings.HasSuffix(text, "\n") {
		if text += "\n"; strings.Contains(text, "\r\n") {
			text = strings.TrimSuffix(text, "\n") + "\r\n"
		}
	}
	return slices.Collect(strings.Lines(text))
}

var note = regexp.MustCompile(regexp.QuoteMeta(rendertest.Note) + `\d+`)

func noteIn(line string) string {
	if at := note.FindStringIndex(line); at != nil {
		return strings.TrimRight(line[at[0]:], "\r\n")
	}
	return ""
}

// extent is the first and the last line of a field or item: all that is indented more than it is part of it. It is 0 where there is none.
func extent(root *yaml.Node, lines []string, path yamledit.Path) (from, to int) {
	parent := yamledit.Find(root, path[:len(path)-1]...)
	n := yamledit.Find(parent, path[len(path)-1])
	if n == nil {
		if above := yamledit.Nearest(root, path...); above.Style&yaml.FlowStyle != 0 { // it would be written there
			return above.Line, deepest(above)
		}
		return 0, 0
	}
	from, column := n.Line, n.Column
	if parent.Style&yaml.FlowStyle != 0 {
		return from, from
	}
	switch parent.Kind {
	case yaml.MappingNode:
		for i := 0; i < len(parent.Content); i += 2 {
			if parent.Content[i].Value == path[len(path)-1] {
				from, column = parent.Content[i].Line, parent.Content[i].Column
			}
		}
	case yaml.SequenceNode: // what it is may begin below its dash
		column = parent.Column
		for dash := strings.Repeat(" ", column-1) + "-"; from > parent.Line && !strings.HasPrefix(lines[from-1], dash); {
			from--
		}
	}
	to = from
	for i := from + 1; i <= len(lines); i++ {
		text := strings.TrimRight(lines[i-1], "\r\n")
		if indent := len(text) - len(strings.TrimLeft(text, " ")); strings.TrimSpace(text) != "" {
			if indent < column && i > deepest(n) {
				break
			}
			to = i
		}
	}
	return from, to
}

func deepest(n *yaml.Node) int {
	last := n.Line
	for _, inner := range n.Content {
		last = max(last, deepest(inner))
	}
	return last
}

// same fails the test unless a cluster's file is what it was.
func (f *random) same(c rendertest.RandomCluster, what string, want []byte) {
	f.Helper()
	if got := must(f.r.read(c.File)); !bytes.Equal(got, want) {
		f.Fatalf("%s: (-want +got)\n%s", what, cmp.Diff(string(want), string(got)))
	}
}

// Whatever a command changes of a cluster, it loses no comment and no byte of anything else, and its opposite leaves no trace.
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
		if c.Pools { // where there was no list, an empty one is left
			f.same(c, "a pool came and went", before.src)
		} else {
			write(f, f.r.Dir, c.File, before.src)
		}
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
	first, err := f.r.Remove(name)
	if err != nil {
		first = &Removal{}
	}
	prune := yamledit.Path{"metadata", "annotations", pruneAnnotation}
	if !f.edit(c, "begin to remove", touched{changed: []yamledit.Path{prune}}, &first.Edit, err) {
		return
	}
	e, err := f.r.CancelRemove(name)
	f.edit(c, "cancel it", touched{
		changed: []yamledit.Path{prune}, gone: []yamledit.Path{{"metadata", "annotations", removeAnnotation}, {"spec", "uninstall"}, {"spec", "postRenderers"}},
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

// done makes a change of whole files.
func (f *random) done(e *Edit, err error) {
	f.Helper()
	_, f.r = done(f, f.r, e, err)
}

// tree is the text of each file.
func (f *random) tree() map[string]string {
	files := map[string]string{}
	err := filepath.WalkDir(f.r.Dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(f.r.Dir, name)
		if err != nil || strings.HasPrefix(filepath.ToSlash(relative), scaffold.ChartsDir+"/") {
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

// What is added and removed again leaves no trace: a cluster, a tenant, a feature, the Flux of a cluster.
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
			f.done(f.r.Add(AddOptions{Name: "added", Environment: env, Flavour: flavour, Values: must(scaffold.ExampleValues(flavour, "v1.36.3"))}))
			for range 2 {
				removal, err := f.r.Remove("added")
				if err != nil {
					f.Fatal(err)
				}
				f.done(&removal.Edit, nil)
			}
			same("a cluster of flavour " + flavour)
		}
		for _, environments := range [][]string{nil, f.Environments[1:]} {
			f.done(f.r.AddTenant("added", TenantOptions{Environments: environments}))
			f.done(f.r.RemoveTenant("added", environments))
			same("a tenant")
		}
		for _, c := range f.Clusters {
			name := c.Environment + "/" + c.Name
			if c.Flavour != "in-memory" && !f.r.exists(strings.TrimSuffix(c.File, clusterFile)+scaffold.FluxFile) {
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

// A new environment is a line in fleet.yaml and in the lists that people have written; nothing else of their files changes.
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

// isWithin tells whether a text is another one with something left out at one place.
func isWithin(text, longer string) bool {
	same := 0
	for same < len(text) && same < len(longer) && text[same] == longer[same] {
		same++
	}
	return len(longer) >= len(text) && strings.HasSuffix(longer, text[same:])
}
