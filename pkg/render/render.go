// Package render renders a fleet repo into the objects that Flux would apply. It follows the Flux Kustomizations from each management
// cluster's own folder, builds them as kustomize-controller does, and renders the HelmReleases that it finds as helm-controller does. It
// works in process, on files alone: no network, no cluster, no other program.
package render

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo/valuesschema"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Rules of the findings.
const (
	RuleScreen     = "render-screen"     // a file that is too large, not text, or a YAML bomb
	RuleSyntax     = "render-syntax"     // a file that is not YAML, or not an object
	RuleDecode     = "render-decode"     // an object of Flux with a value that its kind does not accept
	RulePath       = "render-path"       // a folder or file that is not in the repo
	RuleRemote     = "render-remote"     // a resource that would have to be fetched
	RuleIncomplete = "render-incomplete" // a folder that cannot be built without a resource that would have to be fetched
	RuleKustomize  = "render-kustomize"  // kustomize cannot build it
	RuleField      = "render-field"      // a field of a kustomization.yaml that kustomize does not have, or that it spells in another way
	RuleSubstitute = "render-substitute" // a variable that cannot be filled in
	RuleEmpty      = "render-empty"      // a variable that nothing sets, and that becomes an empty text
	RuleMayBeEmpty = "render-may-empty"  // a variable that becomes an empty text unless an optional ConfigMap of others sets it
	RuleLiteral    = "render-literal"    // a variable that stays as it is written
	RulePatch      = "render-patch"      // a patch, an image or a replacement whose target matches nothing
	RuleSource     = "render-source"     // a source that is not this repo: nothing of it is rendered
	RuleSubmodule  = "render-submodule"  // a folder whose files are another repository's: only Submodules reports it
	RuleChartRef   = "render-chart-ref"  // a HelmChart that is not applied: its release is not rendered
	RuleValues     = "render-values"     // values that the chart's schema refuses, or that cannot be put together
	RuleChart      = "render-chart"      // a chart that cannot be loaded, or whose templates fail
	RuleDuplicate  = "render-duplicate"  // two declarations of one object
	RuleTwice      = "render-twice"      // two declarations of one object in one kustomization, of which nothing is built then
	RuleLimits     = "render-limits"     // a piece of work that takes more memory or time than its limit
	RuleConflict   = "render-conflict"   // an object that two Flux objects make in one cluster
)

// Options of a Renderer.
type Options struct {
	// CacheDir, from CacheFor, is the folder of the cache of results, by content; "" means no cache. Several runs may share it at once.
	CacheDir string
	// Schemas are the schemas of values that the caller has compiled; may be nil. Values that they have accepted are not judged again.
	Schemas *valuesschema.Schemas
	// Outside, if set, returns the archive of a chart outside of the repo, and whether there is one. Without Outside, and without an archive,
	// a finding says that the objects of the chart are not rendered.
	Outside func(OutsideChart) (archive []byte, ok bool)
	// Begin, if set, is called with the name of each piece of work. After an error from Begin, the Renderer skips the work: see confine.Watch.
	Begin func(name, group string, at func() string) (end func(), err error)
	// Time, if above 0, is how long one piece of work may take; see confine.TimeLimit. Templates end earlier, with an error that says where
	// they were.
	Time time.Duration
}

// Renderer renders a fleet repo. Its methods can be called by several goroutines at once. They share all read files, so a Renderer shows
// each file as it was when the Renderer first read it.
type Renderer struct {
	repo    *repo
	seen    *visible // the files that repo reads
	fleet   *v1alpha1.Fleet
	cache   cache
	charts  *charts
	builds  *builds
	begin   func(name, group string, at func() string) (end func(), err error)
	outside func(OutsideChart) ([]byte, bool)
	once    onces
}

// New returns a Renderer of the fleet repo in files, whose fleet.yaml is fleet. For a folder use Dir.
func New(files fs.FS, fleet *v1alpha1.Fleet, o Options) *Renderer {
	seen := &visible{all: files}
	r := &Renderer{repo: &repo{files: seen}, seen: seen, fleet: fleet, cache: newCache(o.CacheDir), outside: o.Outside}
	if r.begin = o.Begin; r.begin == nil {
		r.begin = func(string, string, func() string) (func(), error) { return func() {}, nil }
	}
	r.charts = &charts{repo: r.repo, schemas: cmp.Or(o.Schemas, &valuesschema.Schemas{}), within: o.Time * 3 / 4}
	r.builds = &builds{repo: r.repo, cache: r.cache, begin: r.begin, lenient: fleet.HasPaths()}
	return r
}

// Dir returns the files of a folder, for New. Files outside of the folder cannot be read. Symbolic links are left out, because Flux does
// not apply them, and so are the files and folders in without. The error says that the folder cannot be opened.
func Dir(dir string, without ...string) (fs.FS, error) {
	files, err := within.FS(dir, without...)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	return files, nil
}

// Result has the objects that Flux would apply, in a stable order: by management cluster, then by the tree of Kustomizations. The objects
// of a chart follow the HelmRelease that makes them.
type Result struct {
	Objects []*Object
	// Kustomizations and Releases are the followed Flux Kustomizations and HelmReleases, in the order of Objects.
	Kustomizations []*Kustomization
	Releases       []*Release
	// Files are the files that Flux reads to build the Kustomizations, without the files of charts.
	Files map[string]bool
	// Findings are all problems, sorted by file and line. Only the objects that these problems concern are missing from Objects.
	Findings diag.Findings
}

// All renders the whole fleet. The result has all problems of the files. The error is that of ctx.
func (r *Renderer) All(ctx context.Context) (*Result, error) { return r.render(ctx, scope{}) }

// Environment renders the clusters of an environment, and the objects that they have in common. A name that fleet.yaml does not list is an
// error.
func (r *Renderer) Environment(ctx context.Context, name string) (*Result, error) {
	if !slices.ContainsFunc(r.fleet.Spec.Environments, func(e v1alpha1.Environment) bool { return e.Name == name }) {
		names := make([]string, 0, len(r.fleet.Spec.Environments))
		for _, e := range r.fleet.Spec.Environments {
			names = append(names, e.Name)
		}
		return nil, diag.Unknown("environment", name, names, "`fleetctl environment add "+name+"` makes one")
	}
	return r.render(ctx, scope{environment: name})
}

// Cluster renders one cluster, called name or environment/name: its objects on the management cluster, and the objects that are applied to
// it. A name without a folder is an error.
func (r *Renderer) Cluster(ctx context.Context, name string) (*Result, error) {
	environment, short, qualified := strings.Cut(name, "/")
	if !qualified {
		environment, short = "", name
	}
	found := r.clusterEnvironments(short)
	if qualified {
		found = slices.DeleteFunc(found, func(e string) bool { return e != environment })
	}
	switch {
	case len(found) == 0:
		return r.manifestCluster(ctx, name)
	case len(found) > 1:
		return nil, diag.Usage("say which one: "+strings.Join(found, "/"+short+", ")+"/"+short,
			"there are %s called %s", plain.Count(len(found), "cluster"), short)
	}
	return r.render(ctx, scope{environment: found[0], cluster: short})
}

// manifestCluster renders a cluster without a folder of the layout, called name or namespace/name.
func (r *Renderer) manifestCluster(ctx context.Context, name string) (*Result, error) {
	all, err := r.render(ctx, scope{})
	if err != nil {
		return nil, err
	}
	var found []string
	known := r.clusterNames()
	for _, o := range all.Objects {
		if !IsCluster(o) || len(o.Targets) > 0 {
			continue
		}
		known = append(known, o.Cluster)
		if (o.Name == name || o.Cluster == name || o.Namespace+"/"+o.Name == name) && !slices.Contains(found, o.Cluster) {
			found = append(found, o.Cluster)
		}
	}
	slices.Sort(known)
	switch {
	case len(found) == 0:
		return nil, diag.Unknown("cluster", name, slices.Compact(known), "`fleetctl cluster add` makes one")
	case len(found) > 1:
		return nil, diag.Usage("say which one: "+strings.Join(found, ", "),
			"there are %s called %s", plain.Count(len(found), "cluster"), name)
	}
	is := scope{cluster: found[0]}
	out := &Result{Files: all.Files, Findings: all.Findings}
	for _, o := range all.Objects {
		if is.holds(o) {
			out.Objects = append(out.Objects, o)
		}
	}
	for _, k := range all.Kustomizations {
		if k.Cluster == is.cluster || slices.Contains(k.Targets, is.cluster) {
			out.Kustomizations = append(out.Kustomizations, k)
		}
	}
	for _, rel := range all.Releases {
		if is.holds(rel.Object) {
			out.Releases = append(out.Releases, rel)
		}
	}
	return out, nil
}

// clusterEnvironments returns the environments that have a folder for a cluster called name.
func (r *Renderer) clusterEnvironments(name string) []string {
	var found []string
	r.eachCluster(func(environment, cluster string) {
		if cluster == name && !slices.Contains(found, environment) {
			found = append(found, environment)
		}
	})
	return found
}

func (r *Renderer) clusterNames() []string {
	var names []string
	r.eachCluster(func(_, cluster string) { names = append(names, cluster) })
	slices.Sort(names)
	return slices.Compact(names)
}

// eachCluster visits the folders of clusters, by their names alone.
func (r *Renderer) eachCluster(visit func(environment, cluster string)) {
	for i := range r.fleet.Spec.ManagementClusters {
		for _, at := range r.fleet.Layouts(&r.fleet.Spec.ManagementClusters[i]) {
			for _, environment := range r.repo.folders(at.Clusters()) {
				for _, cluster := range r.repo.folders(at.Environment(environment)) {
					if cluster != layout.CommonDir {
						visit(environment, cluster)
					}
				}
			}
		}
	}
}

// Reads returns the files from which kustomize-controller would build a folder, even if no Kustomization applies it. It builds nothing.
// ok is false if the folder does not exist, or if a file that it names is wrong.
func (r *Renderer) Reads(dir string) (names []string, ok bool) {
	if !r.repo.isDir(dir) {
		return nil, false
	}
	b := &builds{repo: r.repo, lenient: r.fleet.HasPaths()}
	resources, findings := b.resources(dir)
	if findings == nil {
		findings = b.gather(dir, resources, buildSpec{}, nil).findings
	}
	return slices.Sorted(maps.Keys(b.files())), findings.Err() == nil
}

// LeavesOut tells whether source-controller ignores a file, because of a .sourceignore or of its own list.
func (r *Renderer) LeavesOut(name string) bool { return r.seen.ignored(name, false) }
