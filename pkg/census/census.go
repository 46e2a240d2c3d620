// Package census tells which workload clusters a fleet repo declares: those of charts, and those that are written as objects of Cluster
// API. Whoever compares Git with a cloud, a snapshot or a management cluster asks here, because a cluster that is forgotten looks like one
// that nobody wants any more.
package census

import (
	"bytes"
	"context"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/roots"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Clusters lists the workload clusters that a fleet repo with a fleet.yaml declares. Of a cluster of manifests it tells the name, the
// namespace, the management cluster and the place, and nothing else. It renders the repo only if HasManifests. Unreadable files, and what
// cannot be rendered, come back as findings. A sparse checkout that lacks files of the fleet is an error.
func Clusters(ctx context.Context, repo *fleetrepo.Repo) ([]fleetrepo.Cluster, diag.Findings, error) {
	if err := gitrepo.CheckSparse(ctx, repo.Dir, fleetrepo.Matters); err != nil {
		return nil, nil, err
	}
	all, findings, err := repo.Clusters()
	if err != nil || !HasManifests(repo) {
		return all, findings, err
	}
	q := question{Dir: repo.Dir, Ignored: fleetrepo.NotOwn(gitrepo.IgnoredIn(ctx, repo.Dir))}
	written, err := Task.Run(ctx, q, confine.Needs{Read: []string{repo.Dir}})
	if err != nil {
		return nil, nil, err
	}
	return append(all, written.Clusters...), MergeErrors(findings, written.Findings), nil
}

// MergeErrors adds the errors of a rendered repo to the findings of its files, without those that are there already.
func MergeErrors(findings, rendered diag.Findings) diag.Findings {
	for _, f := range rendered {
		if f.Severity == diag.SeverityError && !slices.Contains(findings, f) {
			findings = append(findings, f)
		}
	}
	return findings
}

// question asks which clusters the repo in a folder has as objects of Cluster API. Ignored are files and folders that no commit gets.
type question struct {
	Dir     string
	Ignored []string
}

// answer lists these clusters, and what is wrong with the repo.
type answer struct {
	Clusters []fleetrepo.Cluster
	Findings diag.Findings
}

// Task is the part of Clusters that interprets the files of the fleet repo.
var Task = confine.New("census", task)

func task(ctx context.Context, q question) (*answer, error) {
	files, err := render.Dir(q.Dir, q.Ignored...)
	if err != nil {
		return nil, err
	}
	fleet, err := v1alpha1.Load(filepath.Join(q.Dir, v1alpha1.FileName))
	if err != nil {
		return nil, err
	}
	result, err := render.New(files, roots.AddTo(fleet, files),
		render.Options{Begin: confine.Watch(ctx), Time: confine.TimeLimit(ctx)}).All(ctx)
	if err != nil {
		return nil, err
	}
	out := &answer{Findings: result.Findings}
	for _, o := range result.Objects {
		if render.IsManifestCluster(o) {
			out.Clusters = append(out.Clusters, fleetrepo.Cluster{
				Name: o.Name, Namespace: o.Namespace, ManagementCluster: o.ManagementCluster, Manifests: true,
				File: o.Source.File, Line: o.Source.Line,
			})
		}
	}
	return out, nil
}

var (
	// clusterKind and its group are in every file that declares a Cluster, and in every template of a chart that makes
	// one.
	clusterKind = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`kind["']?\s*:\s*["']?Cluster["']?\s*([,}#\r\n]|$)`) })
	clusterAPI  = []byte("cluster.x-k8s.io/")
)

// HasManifests tells whether a Cluster may be declared outside of the folders of the layout. It is quick, because it renders nothing.
func HasManifests(repo *fleetrepo.Repo) bool {
	found := false
	if repo.Fleet.HasPaths() {
		return true
	}
	_ = within.WalkDir(repo.Dir, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // who renders it says what cannot be read
		case found:
			return fs.SkipAll
		case entry.IsDir():
			if name == layout.ChartsDir || name != "." && strings.HasPrefix(path.Base(name), ".") {
				return fs.SkipDir
			}
			return nil
		case !entry.Type().IsRegular() || path.Base(name) == "cluster.yaml" && strings.HasPrefix(name, "providers/") ||
			!slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)): // a kustomization.yaml can name JSON, too
			return nil
		}
		content, err := within.Start(repo.Dir, name, fleetrepo.MaxFile)
		found = err == nil && bytes.Contains(content, clusterAPI) && clusterKind().Match(content)
		return nil
	})
	return found
}
