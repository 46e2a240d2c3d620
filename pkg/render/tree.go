package render

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// fluxSystem is the name and the namespace of the Flux Kustomization with which a management cluster's Flux begins.
const fluxSystem = "flux-system"

// walk follows the Flux objects of one management cluster, wave by wave. The objects of one wave declare the next wave.
type walk struct {
	r     *Renderer
	mgmt  *v1alpha1.ManagementCluster
	scope scope
	// layouts are the layouts of the management cluster for its clouds, its home first.
	layouts []layout.Layout

	result *Result
	total  *total
	// children are the objects of charts, by the HelmRelease that installs them.
	children map[*Object][]*Object
	seen     map[string]bool
	// shared are the objects that several workload clusters have in common.
	shared map[sharedKey]*Object
	// known are ConfigMaps, Git sources and HelmCharts, by target, namespace and name.
	configMaps map[string]configMap
	sources    map[string]gitSource
	charts     map[string]*chartSource
	// repositories are the sources of charts outside of the repo, by kind and then as above.
	repositories map[string]repository
	// artifacts are the artifacts of generators. waiting are the objects whose source was not found yet, and givenUp the sources that
	// nothing declares.
	artifacts map[string]*artifact
	waiting   []waiter
	givenUp   map[string]bool
	// open are the Kustomizations with variables that are secret or not in the repo.
	open map[Owner]bool
	// own is the source of the management cluster's own folder.
	own kustomizev1.CrossNamespaceSourceReference
}

// sharedKey identifies an object on workload clusters. Objects with the same key become one Object with many targets.
type sharedKey struct {
	content             *content
	source, environment string
}

// item is a Kustomization to build.
type item struct {
	k         *Kustomization
	spec      kustomizev1.KustomizationSpec
	namespace string
	// open says that some of its variables are secret or not in the repo.
	open bool

	outcome
}

// name is a unique name of the Kustomization in the fleet.
func (it *item) name() string {
	text := fmt.Sprintf("the variables of %s (%s)", it.k.Owner, it.k.Path)
	if len(it.k.Targets) > 0 {
		text += " on " + it.k.Targets[0]
	}
	return text
}

// render follows all management clusters.
func (r *Renderer) render(ctx context.Context, s scope) (*Result, error) {
	defer r.cache.use()()
	all, sum := &Result{}, &total{}
	for i := range r.fleet.Spec.ManagementClusters {
		m := &r.fleet.Spec.ManagementClusters[i]
		w := &walk{
			r: r, mgmt: m, layouts: r.fleet.Layouts(m), scope: s, result: &Result{}, total: sum, children: map[*Object][]*Object{},
			seen: map[string]bool{}, shared: map[sharedKey]*Object{}, configMaps: map[string]configMap{}, sources: map[string]gitSource{},
			charts: map[string]*chartSource{}, artifacts: map[string]*artifact{},
			repositories: map[string]repository{}, givenUp: map[string]bool{}, open: map[Owner]bool{},
		}
		w.follow(ctx)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		w.nameTargets()
		w.addTo(all)
	}
	all.Files = r.builds.files()
	if s == (scope{}) { // a part of the fleet does not show what other parts have
		all.Findings = append(all.Findings, r.builds.parts.findings()...)
	}
	nameClusters(all.Objects)
	all.Findings = slices.Concat(all.Findings, r.seen.problems(), conflicts(all.Objects))
	slices.SortStableFunc(all.Findings, func(a, b diag.Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Summary, b.Summary))
	})
	all.Findings = fewer(slices.Compact(all.Findings))
	return all, nil
}

// addTo appends the results of the scope to all.
func (w *walk) addTo(all *Result) {
	releases := map[*Object]*Release{}
	for _, rel := range w.result.Releases {
		releases[rel.Object] = rel
	}
	var add func(o *Object)
	add = func(o *Object) {
		if w.scope.holds(o) {
			all.Objects = append(all.Objects, o)
			if rel := releases[o]; rel != nil {
				all.Releases = append(all.Releases, rel)
			}
		}
		for _, child := range w.children[o] {
			add(child)
		}
	}
	for _, o := range w.result.Objects {
		add(o)
	}
	for _, k := range w.result.Kustomizations {
		if w.scope.follows(k) && (w.scope.environment == "" || k.Environment != "") {
			all.Kustomizations = append(all.Kustomizations, k)
		}
	}
	all.Findings = append(all.Findings, w.result.Findings...)
}

// follow begins with the management cluster's own folder.
func (w *walk) follow(ctx context.Context) {
	wave := w.begin(ctx)
	for len(wave) > 0 && ctx.Err() == nil {
		w.build(ctx, wave)
		var fresh []*Object
		for _, it := range wave {
			w.result.Kustomizations = append(w.result.Kustomizations, it.k)
			w.result.Findings = append(w.result.Findings, it.findings...)
			it.k.Incomplete, it.k.Unread, it.k.Unbuilt = unbuilt(it.findings), it.unread, it.unbuilt
			objects := w.adopt(it)
			if beyond := w.total.add(it.k.Owner, it.k.Source, objects, len(it.objects)-len(objects)); beyond != nil {
				w.result.Findings, it.k.Incomplete = append(w.result.Findings, beyond...), true
				it.k.Unbuilt = []string{it.k.Path}
				continue
			}
			w.result.Objects = append(w.result.Objects, objects...)
			fresh = append(fresh, objects...)
		}
		for wave = w.further(ctx, fresh); len(wave) == 0 && w.giveUp(); {
			wave = w.further(ctx, nil)
		}
	}
}

// begin returns the Kustomization of the management cluster itself. Its own folder declares it, so begin builds the folder once to learn
// how it has to be built. Before `fleetctl init` the folder has no Flux. Then begin also returns the Kustomizations of the environments
// that init would write.
func (w *walk) begin(ctx context.Context) []*item {
	var planned []*item
	dir := w.mgmt.Dir()
	if w.beforeInit() {
		planned = w.planned()
	}
	if !w.r.repo.isDir(dir) {
		return planned
	}
	it := &item{namespace: fluxSystem, k: &Kustomization{
		Owner: Owner{KindKustomization, fluxSystem, fluxSystem}, Path: dir, GitSource: fluxSystem, ManagementCluster: w.mgmt.Name,
	}}
	it.spec.Path = dir
	first := w.r.builds.build(ctx, dir, buildSpec{}, w.scope) // the second build returns the findings
	for _, c := range first.objects {
		if !isFlux(c, KindKustomization) || w.mgmt.Path == "" && (c.Metadata.Name != fluxSystem || c.Metadata.Namespace != fluxSystem) {
			continue
		}
		var own kustomizev1.Kustomization
		if err := json.Unmarshal(c.json, &own); err != nil || cleanPath(own.Spec.Path) != dir || own.Spec.KubeConfig != nil {
			continue
		}
		it.spec, it.k.Source, it.k.Suspended, it.k.GitSource = own.Spec, c.source, own.Spec.Suspend, own.Spec.SourceRef.Name
		it.namespace, it.k.Owner = c.Metadata.Namespace, Owner{KindKustomization, c.Metadata.Namespace, c.Metadata.Name}
		w.own = own.Spec.SourceRef
		w.own.Namespace = cmp.Or(w.own.Namespace, c.Metadata.Namespace)
		break
	}
	w.seen[seenKey(it.k.Owner, nil)] = true
	return append([]*item{it}, planned...)
}

// beforeInit tells whether `fleetctl init` has yet to complete the repo, because the management cluster's folder has no Flux.
func (w *walk) beforeInit() bool { return !w.r.repo.isDir(path.Join(w.mgmt.Dir(), fluxSystem)) }

// planned returns the Kustomizations that init would write for the environments of fleet.yaml, without those whose file exists.
func (w *walk) planned() []*item {
	var all []*item
	for _, at := range w.layouts {
		for _, e := range w.r.fleet.Spec.Environments {
			if !w.r.repo.isDir(at.Environment(e.Name)) || w.r.repo.isFile(at.ClustersFile(e.Name)) {
				continue
			}
			files, err := scaffold.EnvironmentFiles(at, scaffold.Environment{Name: e.Name, Source: w.r.fleet.ChannelOf(e.Name).Source()})
			if err != nil {
				continue // the name is not valid, which is a finding about fleet.yaml
			}
			contents, _ := parse(files[0].Path, files[0].Content)
			for _, c := range contents {
				o := w.object(c, &Kustomization{ManagementCluster: w.mgmt.Name})
				o.Source = Source{}
				all = append(all, w.kustomizations(o)...)
			}
		}
	}
	return all
}

// build builds the Kustomizations of a wave, and then fills in their variables, because a ConfigMap may be in another Kustomization of the
// wave.
func (w *walk) build(ctx context.Context, wave []*item) {
	each(wave, func(it *item) { it.outcome = w.buildOne(ctx, it) })
	for _, it := range wave {
		w.learn(it.objects, it.k.Targets)
	}
	each(wave, func(it *item) { w.finishOne(it) })
	for _, it := range wave {
		w.open[it.k.Owner] = w.open[it.k.Owner] || it.open
	}
}

// each calls do for all items, in as many goroutines as there are processors.
func each[T any](all []T, do func(T)) {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, one := range all {
		group.Go(func() error {
			do(one)
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
}

func (w *walk) buildOne(ctx context.Context, it *item) outcome {
	fail := func(rule, summary, hint string) outcome {
		return nothing(it.k.Path, diag.Findings{{
			Severity: diag.SeverityError, Rule: rule, File: it.k.Source.File, Line: it.k.Source.Line,
			Summary: it.k.Owner.String() + ": " + summary, Hint: hint,
		}})
	}
	if !w.r.repo.isDir(it.k.Path) {
		return fail(RulePath, fmt.Sprintf("the folder %s that it applies is not in the repo", it.k.Path),
			w.r.repo.missingHint(it.k.Path))
	}
	spec := buildSpec{
		TargetNamespace: it.spec.TargetNamespace, NamePrefix: it.spec.NamePrefix, NameSuffix: it.spec.NameSuffix, Patches: it.spec.Patches,
		Images: it.spec.Images,
	}
	var findings diag.Findings
	if spec.Components, findings = w.components(it); findings != nil {
		return nothing(it.k.Path, findings)
	}
	if err := spec.screen(); err != nil {
		return fail(RuleScreen, err.Error(), "")
	}
	if i := untargeted(spec.Patches); i >= 0 {
		return fail(RuleKustomize, fmt.Sprintf("spec.patches[%d]: %s", i, NeedsTargetSummary), NeedsTargetHint)
	}
	out := w.r.builds.build(ctx, it.k.Path, spec, w.scope)
	complete := !slices.ContainsFunc(out.findings, func(f diag.Finding) bool { return f.Rule == RuleRemote })
	if w.scope == (scope{}) && out.findings.Err() == nil && complete {
		out.findings = slices.Concat(out.findings, idlePatches(it, out.objects), idleImages(it, out.objects))
	}
	return out
}

// finishOne does what kustomize-controller does after kustomize, and reports objects that are declared twice.
func (w *walk) finishOne(it *item) {
	end, err := w.r.begin(it.name(), "", nil)
	defer end()
	if err != nil {
		it.objects, it.unbuilt = nil, []string{it.k.Path}
		it.findings = append(slices.Clip(it.findings), diag.Finding{
			Severity: diag.SeverityError, Rule: RuleLimits, File: it.k.Source.File, Line: it.k.Source.Line,
			Summary: fmt.Sprintf("fill in the variables of %s: %v", it.k.Owner, err),
		})
		return
	}
	v, findings := variablesOf(it.k, it.spec.PostBuild, func(name string) (map[string]string, bool) {
		return w.configMap(nil, it.namespace, name) // the ConfigMaps are on the management cluster, not on the target
	})
	it.open = v != nil && v.open
	findings = append(slices.Clip(it.findings), findings...)
	out := make([]*content, 0, len(it.objects))
	seen := map[string]*content{}
	for _, c := range it.objects {
		changed, err := v.apply(c)
		if err != nil {
			findings = append(findings, diag.Finding{
				Severity: diag.SeverityError, Rule: RuleSubstitute, File: c.source.File, Line: c.source.Line,
				Summary: fmt.Sprintf("%s %s: fill in the variables of %s: %v", c.Kind, c.Metadata.Name, it.k.Owner, err),
				Hint:    "write $${ for a ${ that must stay",
			})
			it.unread = append(slices.Clip(it.unread), c.source)
			continue
		}
		if post := it.spec.PostBuild; post == nil || v.none(post) {
			findings = append(findings, it.literal(c, v)...)
		}
		if changed != c { // otherwise no variable was filled in
			findings = append(findings, w.empties(it, c, v)...)
		}
		group, _, _ := strings.Cut(changed.APIVersion, "/")
		id := strings.Join([]string{group, changed.Kind, changed.Metadata.Namespace, changed.Metadata.Name}, "\x00")
		if first := seen[id]; first != nil {
			findings = append(findings, diag.Finding{
				Severity: diag.SeverityError, Rule: RuleDuplicate, File: changed.source.File, Line: changed.source.Line,
				Summary: fmt.Sprintf("%s %s is declared twice", changed.Kind, changed.Metadata.Name),
				Hint:    fmt.Sprintf("the other one is in %s, line %d: Flux applies neither while there are two", first.source.File, first.source.Line),
			})
			continue
		}
		seen[id] = changed
		out = append(out, changed)
	}
	if m := it.spec.CommonMetadata; m != nil {
		if changed, err := withMetadata(out, m.Labels, m.Annotations); err == nil {
			out = changed
		}
	}
	it.objects, it.findings = out, findings
}

// empties reports the variables of an object that nothing sets. In a repo with its own layout, something else may make an optional
// ConfigMap that sets them.
func (w *walk) empties(it *item, c *content, v *variables) (out diag.Findings) {
	for _, name := range v.empties(c.json) {
		f := diag.Finding{
			Severity: diag.SeverityWarning, Rule: RuleEmpty, File: c.source.File, Line: c.source.Line,
			Summary: fmt.Sprintf("%s %s: nothing sets the variable %s of %s, so it becomes empty", c.Kind, c.Metadata.Name, name, it.k.Owner),
			Hint:    "set it in postBuild, give it a default (${" + name + ":=…}), or write $${ for a ${ that must stay",
		}
		if w.mgmt.Path != "" && len(v.absent) > 0 {
			f.Rule = RuleMayBeEmpty
			f.Summary += fmt.Sprintf(" unless the ConfigMap %.80s does, which is not in the repo", strings.Join(v.absent, " or "))
		}
		out = append(out, f)
	}
	return out
}

// adopt makes the Objects of a built Kustomization. If another workload cluster has the same object, that Object gets one more target
// instead.
func (w *walk) adopt(it *item) []*Object {
	all := make([]*Object, 0, len(it.objects))
	for _, c := range it.objects {
		o := w.object(c, it.k)
		if len(it.k.Targets) == 0 {
			all = append(all, o)
			continue
		}
		k := sharedKey{content: c, source: o.GitSource, environment: o.Environment}
		if there := w.shared[k]; there != nil && there.Suspended == o.Suspended {
			there.Targets = append(slices.Clip(there.Targets), o.Targets...)
			if there.Cluster != o.Cluster {
				there.Cluster = ""
			}
			continue
		}
		w.shared[k] = o
		all = append(all, o)
	}
	return all
}

// object returns the Object for content that a Kustomization applies.
func (w *walk) object(c *content, k *Kustomization) *Object {
	o := &Object{
		APIVersion: c.APIVersion, Kind: c.Kind, Namespace: c.Metadata.Namespace, Name: c.Metadata.Name, JSON: c.json, Source: c.source,
		Template: c.template, Owner: k.Owner, GitSource: k.GitSource, ManagementCluster: w.mgmt.Name, Targets: k.Targets, Suspended: k.Suspended,
	}
	o.Environment, o.Cluster = placed(w.layouts, c.source.File)
	o.Environment, o.Cluster = cmp.Or(o.Environment, k.Environment), cmp.Or(o.Cluster, k.Cluster)
	return o
}

func (w *walk) problem(o *Object, severity diag.Severity, rule, summary string) {
	w.result.Findings = append(w.result.Findings, diag.Finding{
		Severity: severity, Rule: rule, File: o.Source.File, Line: o.Source.Line, Summary: o.ID() + ": " + summary,
	})
}
