package validate

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// passedOver looks for files of the layout that Flux never applies, although their place says that they should have an effect. Flux does
// not report such files.
type passedOver struct {
	*run
	renderer *render.Renderer
	// read are the files that Flux builds from, or would build from as soon as a cluster uses the feature, the tenant or the network of the
	// file.
	read map[string]bool
	// paths are the paths of the Flux Kustomizations that work on workload clusters.
	paths    map[string]bool
	clusters []*cluster
	// texts are the texts in which a file may be named, by their files. isNamed fills it.
	texts    map[string]string
	findings diag.Findings
}

// checkUnapplied reports files of the layout that nothing applies. It reports no file that cannot be read, and none that a document which
// cannot be read, or a folder that does not build, may use.
func (r *run) checkUnapplied(renderer *render.Renderer, placed *placement) diag.Findings {
	u := &passedOver{run: r, renderer: renderer, read: r.rendered.Files, paths: map[string]bool{}, clusters: placed.clusters}
	for _, g := range r.gaps() {
		if g.everywhere {
			return nil
		}
		for name := range g.files {
			u.read[name] = true
		}
	}
	for _, k := range r.rendered.Kustomizations {
		if len(k.Targets) > 0 {
			u.paths[k.Path] = true
		}
	}
	for _, unit := range u.units(placed) {
		u.asIfUsed(unit)
	}
	for _, dir := range u.declaredPaths() {
		if slices.ContainsFunc([]string{layout.FeaturesDir, "tenants", layout.AddonsDir},
			func(top string) bool { return strings.HasPrefix(dir, top+"/") }) {
			u.asIfApplied(dir)
		}
	}
	u.astray(placed.clusters)
	for i := range r.fleet.Spec.ManagementClusters {
		u.managementCluster(&r.fleet.Spec.ManagementClusters[i], placed.clusters)
	}
	for _, dir := range []string{layout.FeaturesDir, "tenants", layout.AddonsDir} {
		u.below(dir, u.reason)
	}
	if !u.isForeign() {
		u.loose()
	}
	if r.isForeign() { // the folders of such a repo have names of their own
		for _, k := range r.rendered.Kustomizations {
			switch {
			case k.Path == ".":
			case u.hasKustomization(k.Path):
				u.below(k.Path, u.reason)
			default:
				u.json(k.Path)
			}
		}
		u.forgotten()
	}
	return u.findings
}

// units returns the folders that are applied as a whole or not at all.
func (u *passedOver) units(placed *placement) []string {
	var units []string
	below := func(dir string) {
		for _, name := range placed.subfolders(dir) {
			units = append(units, path.Join(dir, name))
		}
	}
	below(layout.FeaturesDir)
	for _, kind := range placed.subfolders(layout.AddonsDir) {
		below(path.Join(layout.AddonsDir, kind))
	}
	if u.isForeign() { // in fleetctl's layout, the Flux Kustomization of a tenant names its folder
		for _, cloud := range placed.subfolders("tenants") {
			for _, environment := range placed.subfolders(path.Join("tenants", cloud)) {
				below(path.Join("tenants", cloud, environment))
			}
		}
	}
	for _, l := range u.layouts() {
		for _, environment := range placed.subfolders(l.Clusters()) {
			units = append(units, l.Apps(environment), l.Sync(environment), l.WorkloadFlux(environment))
			if u.tree.has(l.FoldersFile(environment)) && u.fluxless(l, environment) == nil {
				for _, scope := range layout.Scopes() {
					units = append(units, path.Join(l.Environment(environment), layout.CommonDir, scope))
				}
			}
		}
	}
	return units
}

// layouts returns the layouts of all management clusters for all their clouds.
func (u *passedOver) layouts() []layout.Layout {
	var all []layout.Layout
	for i := range u.fleet.Spec.ManagementClusters {
		all = append(all, u.fleet.Layouts(&u.fleet.Spec.ManagementClusters[i])...)
	}
	return all
}

// asIfUsed marks the files of a unit, such as a feature, as read: all files that Flux would read if every cluster used the unit. A unit
// that no cluster uses yet is no fault.
func (u *passedOver) asIfUsed(unit string) {
	var dirs []string
	for _, name := range u.tree.folders[unit] {
		if dir := path.Join(unit, name); slices.Contains(layout.Scopes(), name) || u.hasKustomization(dir) {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 || u.hasKustomization(unit) {
		dirs = append(dirs, unit)
	}
	for _, dir := range dirs {
		u.asIfApplied(dir)
	}
}

// asIfApplied marks as read all files that Flux would read of a folder.
func (u *passedOver) asIfApplied(dir string) {
	below := u.tree.below(dir)
	if !slices.ContainsFunc(below, func(f *file) bool { return !u.read[f.path] && looksApplied(f.path) }) {
		return
	}
	names, ok := u.renderer.Reads(dir)
	for _, name := range names {
		u.read[name] = true
	}
	if ok {
		return
	}
	for _, f := range below { // its faults are reported when a cluster uses it
		u.read[f.path] = true
	}
}

func (u *passedOver) hasKustomization(dir string) bool {
	return slices.ContainsFunc(layout.KustomizationNames(), func(name string) bool { return u.tree.has(path.Join(dir, name)) })
}

// declaredPaths returns the folders that Flux Kustomizations of the repo name. It includes Flux Kustomizations that nothing applies,
// because an environment may have no cluster yet, or wait for its first tag.
func (u *passedOver) declaredPaths() []string {
	var dirs []string
	for _, f := range u.tree.files {
		for _, d := range f.documents {
			if kindOf(d) != "Kustomization" {
				continue
			}
			at := mapping.Fields(d.object).Text("spec", "path")
			if dir := path.Clean(strings.TrimPrefix(at, "/")); at != "" && !strings.Contains(at, "${") && strings.Contains(dir, "/") {
				dirs = append(dirs, dir)
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// loose checks the files that are beside the folders of the layout, and not in one of them.
func (u *passedOver) loose() {
	dirs := []string{"providers", layout.ChartsDir}
	for _, l := range u.layouts() {
		dirs = append(dirs, path.Dir(l.Owned()), l.Owned())
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		for _, name := range u.tree.folders[dir] {
			if f := u.tree.byPath[path.Join(dir, name)]; f != nil {
				u.judge(f, u.reason)
			}
		}
	}
}

// fluxless returns a cluster of an environment whose clusters in a cloud all run no Flux, so that shared files reach none of them. If it
// can, it returns one that could run Flux. It returns nil for other environments.
func (u *passedOver) fluxless(l layout.Layout, environment string) *cluster {
	var one *cluster
	for _, c := range u.clusters {
		if c.environment != environment || c.at != l {
			continue
		}
		if u.tree.has(path.Join(c.dir, layout.FluxFile)) {
			return nil
		}
		if one == nil || u.withoutFlux(one) {
			one = c
		}
	}
	return one
}

// expected tells whether a file that the clusters of an environment share is there before its first reader. Before `fleetctl init`, the
// repo has no Flux that a cluster could run. And the values of a feature stay with the feature, whether or not a cluster has both.
func (u *passedOver) expected(m *v1alpha1.ManagementCluster, l layout.Layout, environment string, f *file) bool {
	c := u.fluxless(l, environment)
	if c == nil || !u.waits(f) {
		return false
	}
	if u.withoutFlux(c) {
		feature, isValues := strings.CutSuffix(path.Base(f.path), "-values.yaml")
		return isValues && u.tree.has(path.Join(layout.FeaturesDir, feature, "namespaced", "release.yaml"))
	}
	return !u.tree.has(path.Join(m.Dir(), layout.FluxDir))
}

// waits tells whether a file is shared by the clusters of an environment, none of which runs Flux yet. That is no error, because the next
// cluster may run Flux.
func (u *passedOver) waits(f *file) bool {
	for _, l := range u.layouts() {
		for _, e := range u.fleet.Spec.Environments {
			for _, scope := range layout.Scopes() {
				if strings.HasPrefix(f.path, path.Join(l.Environment(e.Name), layout.CommonDir, scope)+"/") {
					return u.fluxless(l, e.Name) != nil
				}
			}
		}
	}
	return false
}

// astray reports files for a workload cluster that the management cluster would apply to itself. It applies all files of a folder without a
// kustomization.yaml.
func (u *passedOver) astray(clusters []*cluster) {
	folders := map[string]*cluster{}
	for _, c := range clusters {
		for _, scope := range layout.Scopes() {
			folders[path.Join(c.dir, scope)] = c
		}
	}
	seen := map[string]bool{}
	for _, o := range u.rendered.Objects {
		name := o.Source.File
		if len(o.Targets) > 0 || seen[name] {
			continue
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if c := folders[dir]; c != nil {
				seen[name] = true
				u.findings = append(u.findings, finding(RuleNotApplied, name, max(1, o.Source.Line), 0,
					fmt.Sprintf("the management cluster %s applies this to itself: cluster %s never gets it", c.mgmt.Name, c.name), wires(c.environment)))
				break
			}
		}
	}
}

func wires(environment string) string {
	return "`" + diag.ShellCommand("fleetctl", "environment", "wire", environment) + "` lets Flux apply the folder to the cluster"
}

// managementCluster checks the folders of a management cluster and of its environments.
func (u *passedOver) managementCluster(m *v1alpha1.ManagementCluster, clusters []*cluster) {
	if u.tree.has(path.Join(m.Dir(), layout.FluxDir)) && m.Dir() != "." { // the top of the repo has many other files
		u.below(m.Dir(), u.reason)
	}
	for _, l := range u.fleet.Layouts(m) {
		u.clustersOf(m, l, clusters)
	}
}

// clustersOf checks the folders of a management cluster's environments in one cloud.
func (u *passedOver) clustersOf(m *v1alpha1.ManagementCluster, l layout.Layout, clusters []*cluster) {
	base := l.Clusters()
	for _, name := range u.tree.folders[base] {
		if f := u.tree.byPath[path.Join(base, name)]; f != nil {
			u.judge(f, u.reason)
		}
	}
	for _, e := range u.fleet.Spec.Environments {
		dir := path.Join(base, e.Name)
		if !slices.ContainsFunc(u.rendered.Kustomizations, func(k *render.Kustomization) bool {
			return k.ManagementCluster == m.Name && len(k.Targets) == 0 && (k.Path == dir || strings.HasPrefix(dir, k.Path+"/"))
		}) {
			continue // that nothing applies the environment is a finding of its own, or it waits for its first tag
		}
		for _, name := range u.tree.folders[dir] {
			at := path.Join(dir, name)
			if f := u.tree.byPath[at]; f != nil {
				u.judge(f, u.reason)
				continue
			}
			if name == layout.CommonDir {
				for _, f := range u.tree.below(at) {
					if !u.expected(m, l, e.Name, f) {
						u.judge(f, func(f *file) (string, string) { return u.commonReason(l, e.Name, at, f) })
					}
				}
				continue
			}
			if i := slices.IndexFunc(clusters, func(c *cluster) bool { return c.dir == at }); i >= 0 {
				u.below(at, func(f *file) (string, string) { return u.clusterReason(clusters[i], f) })
			}
		}
	}
}

// below checks all files below a folder.
func (u *passedOver) below(dir string, why func(f *file) (summary, hint string)) {
	for _, f := range u.tree.below(dir) {
		u.judge(f, why)
	}
}

// json checks the objects in JSON of a folder without a kustomization.yaml, of which Flux takes the YAML files only.
func (u *passedOver) json(dir string) {
	for _, f := range u.tree.below(dir) {
		if path.Ext(f.path) == ".json" && u.hasObjects(f) {
			u.judge(f, u.reason)
			u.read[f.path] = true // another folder may have it in it, too
		}
	}
}

// judge reports a file that looks like one to apply and that Flux never reads.
func (u *passedOver) judge(f *file, why func(f *file) (summary, hint string)) {
	if u.read[f.path] || f.broken || f.unread || !looksApplied(f.path) || u.inChart(f.path) || u.isNamed(f.path) {
		return
	}
	summary, hint := why(f)
	switch ext := path.Ext(f.path); {
	case u.renderer.LeavesOut(f.path):
		summary, hint = "Flux never sees it: a .sourceignore, or Flux's default list of ignored files, has it",
			"remove the line from .sourceignore, or the file from the repo"
	case ext != ".yaml" && ext != ".yml" && !layout.IsKustomization(f.path):
		summary, hint = "Flux takes files that end in .yaml or .yml, and no other",
			"rename it, name it under resources of a kustomization.yaml, or delete it"
	}
	found := finding(RuleNotApplied, f.path, 1, 0, "nothing applies this file: "+summary, hint)
	if !u.hasObjects(f) || u.waits(f) || u.isForeign() { // in a repo with its own layout, it may be for people, or for later
		found.Severity = diag.SeverityWarning
	}
	u.findings = append(u.findings, found)
}

// looksApplied tells whether a file looks as if Flux applied it. Documentation, keys, scripts and names that begin with a dot do not.
func looksApplied(name string) bool {
	base := strings.ToLower(path.Base(name))
	if strings.HasPrefix(base, ".") {
		return false
	}
	for _, ext := range []string{".yaml", ".yml", ".json"} {
		if i := strings.LastIndex(base, ext); i > 0 && !strings.HasSuffix(base, ".md") {
			return true
		}
	}
	return layout.IsKustomization(name)
}

// hasObjects tells whether a file has objects.
func (u *passedOver) hasObjects(f *file) bool {
	if path.Ext(f.path) == ".json" {
		return bytes.Contains(f.content, []byte(`"apiVersion"`)) && bytes.Contains(f.content, []byte(`"kind"`))
	}
	return layout.IsKustomization(f.path) || slices.ContainsFunc(f.documents, func(d *document) bool { return kindOf(d) != "" })
}

// inChart tells whether a file is part of a Helm chart.
func (u *passedOver) inChart(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if u.tree.byPath[path.Join(dir, "Chart.yaml")] != nil {
			return true
		}
	}
	return false
}
