package review

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// NeedsOptions name the fleet repo whose clusters' needs are wanted.
type NeedsOptions struct {
	// Dir is a folder in the fleet repo. CacheDir keeps what is rendered; "" keeps nothing.
	Dir, CacheDir string
	// Features are included even if no cluster has them. Networks are always included.
	Features []string
}

// ClusterNeeds is what the clusters of a fleet repo need from outside of the repo.
type ClusterNeeds struct {
	// Manifests are the objects that name images.
	Manifests [][]byte
	// Charts are the charts outside of the repo, one entry for each HelmRelease that renders differently.
	Charts []ChartUse
	// Findings are the faults of the repo.
	Findings diag.Findings
	seen     map[string]bool
}

// ChartUse is a HelmRelease whose chart is outside of the repo.
type ChartUse struct {
	// Name of the HelmRelease, for people.
	Name string
	Ref  ChartRef
	// Release is the HelmRelease. Values are the data of the ConfigMaps that it may name.
	Release []byte
	Values  map[string]map[string]string
}

// ChartRef says where a chart is: URL "oci://registry/path/chart" and no name, or the URL of a repository and the chart's name there.
type ChartRef struct{ URL, Name, Version string }

// String returns the chart in the form that people write.
func (r ChartRef) String() string {
	if r.Name == "" {
		return r.URL + ":" + r.Version
	}
	return strings.TrimSuffix(r.URL, "/") + "/" + r.Name + " " + r.Version
}

// Needs finds what the clusters of a fleet repo need from outside of the repo. The error says that the repo cannot be
// opened, or that a feature does not exist.
func Needs(ctx context.Context, o NeedsOptions) (*ClusterNeeds, error) {
	dir, _, err := fleetrepo.FindAny(o.Dir)
	if err != nil {
		return nil, err
	}
	o.Dir, o.CacheDir = dir, render.CacheFor(o.CacheDir, dir)
	out, err := NeedsTask.Run(ctx, o, confine.Needs{Read: []string{dir}, Write: writable(o.CacheDir)})
	return &out, err
}

// NeedsTask is the part of Needs that interprets the files of the fleet repo.
var NeedsTask = confine.New("needs", needsTask)

func needsTask(ctx context.Context, o NeedsOptions) (ClusterNeeds, error) {
	var out ClusterNeeds
	r, files, err := openRenderer(ctx, o.Dir, o.CacheDir)
	if err != nil {
		return out, err
	}
	all, err := r.All(ctx)
	if err != nil {
		return out, err
	}
	out.wrong(all.Findings)
	out.collect(all.Objects)
	networks, err := fs.ReadDir(files, path.Dir(layout.CNIDir("any")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, err
	}
	n := &needs{Renderer: r, ctx: ctx, files: files, out: &out, made: map[string][]*render.Object{}}
	for _, e := range networks {
		if e.IsDir() {
			out.collect(n.folder(layout.CNIDir(e.Name())))
		}
	}
	return out, n.features(o)
}

// wrong returns the findings that are errors.
func (n *ClusterNeeds) wrong(findings diag.Findings) {
	for _, f := range findings {
		if f.Severity == diag.SeverityError && !slices.Contains(n.Findings, f) {
			n.Findings = append(n.Findings, f)
		}
	}
}

// needs renders folders, even if nothing applies them yet, as before `fleetctl init`.
type needs struct {
	*render.Renderer
	ctx   context.Context //nolint:containedctx // it lives as long as one look
	files fs.FS
	out   *ClusterNeeds
	made  map[string][]*render.Object // by folder
}

// folder returns the objects of a folder; none if the folder does not exist.
func (n *needs) folder(dir string) []*render.Object {
	if info, err := fs.Stat(n.files, dir); err != nil || !info.IsDir() {
		return nil
	}
	if made, ok := n.made[dir]; ok {
		return made
	}
	objects, findings := n.Folder(n.ctx, dir)
	n.out.wrong(findings)
	n.made[dir] = objects
	return objects
}

// scopes returns the objects of all scopes in a folder.
func (n *needs) scopes(dir string) (objects []*render.Object) {
	for _, scope := range layout.Scopes() {
		objects = append(objects, n.folder(path.Join(dir, scope))...)
	}
	return objects
}

// features looks at the enabled features and at the named ones, each with the values of its environments and clusters.
func (n *needs) features(o NeedsOptions) error {
	repo, err := fleetrepo.Open(o.Dir)
	if err != nil {
		if len(o.Features) == 0 {
			return nil // a repo that existed before fleetctl has no features
		}
		return err
	}
	for _, name := range o.Features {
		if !slices.Contains(repo.FeatureNames(), name) {
			return diag.Usage("`fleetctl feature list` shows the existing ones", "there is no feature %q", name)
		}
	}
	all, err := repo.Features()
	if err != nil {
		return err
	}
	clusters, _, err := repo.Clusters()
	if err != nil {
		return err
	}
	for _, f := range all {
		if !slices.Contains(o.Features, f.Name) && len(f.Environments)+len(f.Clusters)+len(f.ManagementClusters) == 0 {
			continue
		}
		feature := n.scopes(path.Join(layout.FeaturesDir, f.Name))
		n.out.collect(feature)
		for i := range repo.Fleet.Spec.ManagementClusters {
			for _, l := range repo.Fleet.Layouts(&repo.Fleet.Spec.ManagementClusters[i]) {
				for _, environment := range repo.EnvironmentNames() {
					common := n.scopes(l.Cluster(environment, layout.CommonDir))
					n.out.collect(slices.Concat(feature, common))
				}
			}
		}
		for _, c := range clusters {
			dir := path.Dir(c.File)
			n.out.collect(slices.Concat(feature, n.scopes(path.Join(path.Dir(dir), layout.CommonDir)), n.scopes(dir)))
		}
	}
	return nil
}

// collect sorts the objects: some name images, others name charts.
func (n *ClusterNeeds) collect(objects []*render.Object) {
	if n.seen == nil {
		n.seen = map[string]bool{}
	}
	first := func(key string) bool {
		was := n.seen[key]
		n.seen[key] = true
		return !was
	}
	at := newPlaces(objects)
	for _, o := range objects {
		if o.Kind == render.KindHelmRelease {
			if use := at.chartOf(o); use != nil && first(use.key()) {
				n.Charts = append(n.Charts, *use)
			}
		} else if bytes.Contains(o.JSON, []byte(`"image"`)) && first(string(o.JSON)) {
			n.Manifests = append(n.Manifests, o.JSON)
		}
	}
}

// key has everything that the objects of a HelmRelease depend on.
func (u *ChartUse) key() string {
	said, err := json.Marshal([]any{u.Ref, u.Values, u.Release})
	if err != nil {
		return u.Name
	}
	return string(said)
}

// places finds sources and ConfigMaps by namespace and name.
type places map[string]*render.Object

func placeOf(targets []string, kind, namespace, name string) string {
	where := ""
	if len(targets) > 0 {
		where = targets[0]
	}
	return strings.Join([]string{where, kind, namespace, name}, "\x00")
}

func newPlaces(objects []*render.Object) places {
	at := places{}
	for _, o := range objects {
		switch o.Kind {
		case "OCIRepository", "HelmRepository", "HelmChart", "ConfigMap":
			at[placeOf(o.Targets, o.Kind, o.Namespace, o.Name)] = o
		}
	}
	return at
}

// chartTemplate has the fields of a HelmRelease or a HelmChart about a chart in a repository.
type chartTemplate struct {
	Chart     string `json:"chart"`
	Version   string `json:"version"`
	SourceRef struct {
		Kind      string `json:"kind"`
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"sourceRef"`
}

// releaseSpec has the fields of a HelmRelease that count here.
type releaseSpec struct {
	Spec struct {
		Chart *struct {
			Spec chartTemplate `json:"spec"`
		} `json:"chart"`
		ChartRef *struct {
			Kind      string `json:"kind"`
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"chartRef"`
		ValuesFrom []struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"valuesFrom"`
	} `json:"spec"`
}

// chartOf returns the use of a chart outside of the repo by a HelmRelease. It returns nil if the chart is in the repo,
// or its source is not.
func (p places) chartOf(o *render.Object) *ChartUse {
	var r releaseSpec
	if err := json.Unmarshal(o.JSON, &r); err != nil {
		return nil // the schema reports what is wrong
	}
	use := &ChartUse{
		Name: fmt.Sprintf("HelmRelease %s/%s (%s)", o.Namespace, o.Name, o.Source.File), Release: o.JSON,
		Values: map[string]map[string]string{},
	}
	switch ref := r.Spec.ChartRef; {
	case r.Spec.Chart != nil:
		use.Ref = p.inRepository(o.Targets, o.Namespace, r.Spec.Chart.Spec)
	case ref != nil && ref.Kind == "OCIRepository":
		use.Ref = p.image(o.Targets, cmp.Or(ref.Namespace, o.Namespace), ref.Name)
	case ref != nil && ref.Kind == "HelmChart":
		namespace := cmp.Or(ref.Namespace, o.Namespace)
		var c struct {
			Spec chartTemplate `json:"spec"`
		}
		if source := p[placeOf(o.Targets, ref.Kind, namespace, ref.Name)]; source != nil && json.Unmarshal(source.JSON, &c) == nil {
			use.Ref = p.inRepository(o.Targets, namespace, c.Spec)
		}
	}
	if use.Ref.URL == "" {
		return nil
	}
	for _, from := range r.Spec.ValuesFrom {
		var c struct {
			Data map[string]string `json:"data"`
		}
		if m := p[placeOf(o.Targets, "ConfigMap", o.Namespace, from.Name)]; from.Kind == "ConfigMap" && m != nil &&
			json.Unmarshal(m.JSON, &c) == nil {
			use.Values[from.Name] = c.Data
		}
	}
	return use
}

// inRepository returns a chart in a HelmRepository, which may be a registry.
func (p places) inRepository(targets []string, namespace string, t chartTemplate) ChartRef {
	source := p[placeOf(targets, t.SourceRef.Kind, cmp.Or(t.SourceRef.Namespace, namespace), t.SourceRef.Name)]
	var s struct {
		Spec struct {
			URL string `json:"url"`
		} `json:"spec"`
	}
	if t.SourceRef.Kind != "HelmRepository" || source == nil || json.Unmarshal(source.JSON, &s) != nil {
		return ChartRef{}
	}
	if strings.HasPrefix(s.Spec.URL, "oci://") {
		return ChartRef{URL: strings.TrimSuffix(s.Spec.URL, "/") + "/" + t.Chart, Version: t.Version}
	}
	return ChartRef{URL: s.Spec.URL, Name: t.Chart, Version: t.Version}
}

func (p places) image(targets []string, namespace, name string) ChartRef {
	source := p[placeOf(targets, "OCIRepository", namespace, name)]
	var s struct {
		Spec struct {
			URL string `json:"url"`
			Ref struct {
				Tag    string `json:"tag"`
				SemVer string `json:"semver"`
			} `json:"ref"`
		} `json:"spec"`
	}
	if source == nil || json.Unmarshal(source.JSON, &s) != nil {
		return ChartRef{}
	}
	return ChartRef{URL: s.Spec.URL, Version: cmp.Or(s.Spec.Ref.Tag, s.Spec.Ref.SemVer)}
}

// chartUses are HelmReleases to render with the charts in the folders 0, 1, 2… of Dir.
type chartUses struct {
	Dir  string
	Uses []ChartUse
}

// RenderCharts renders HelmReleases with their charts, each unpacked in the folder of its number below dir.
func RenderCharts(ctx context.Context, dir string, uses []ChartUse) (*ClusterNeeds, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	out, err := ChartsTask.Run(ctx, chartUses{Dir: dir, Uses: uses}, confine.Needs{Read: []string{dir}})
	return &out, err
}

// ChartsTask is the part of RenderCharts that interprets charts.
var ChartsTask = confine.New("charts", chartsTask)

func chartsTask(ctx context.Context, q chartUses) (ClusterNeeds, error) {
	var out ClusterNeeds
	files, err := render.Dir(q.Dir)
	if err != nil {
		return out, err
	}
	r := render.New(files, &v1alpha1.Fleet{}, render.Options{Begin: confine.Watch(ctx), Time: confine.TimeLimit(ctx)})
	for i, u := range q.Uses {
		objects, findings := r.Release(u.Release, strconv.Itoa(i), u.Values)
		for _, f := range findings {
			if f.Severity == diag.SeverityError {
				f.File, f.Line = "", 0 // the finding belongs to the chart
				f.Summary = u.Name + ": " + f.Summary
				out.Findings = append(out.Findings, f)
			}
		}
		out.collect(slices.DeleteFunc(objects, func(o *render.Object) bool { return o.Kind == render.KindHelmRelease }))
	}
	return out, nil
}
