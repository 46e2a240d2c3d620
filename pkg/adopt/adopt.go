// Package adopt looks at a repo that is older than its use of fleetctl: a repo with Flux, and with Cluster API objects. It reports what it
// understands, and makes the smallest fleet.yaml with which the other commands work in the repo.
package adopt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/review"
	"github.com/fleetctl/fleetctl/pkg/roots"
)

// Options of Look.
type Options struct {
	// Dir is in the repo.
	Dir string
	// Name of the fleet; "" is that of the repo's folder.
	Name string
	// Context reaches the management cluster, in the user's kubeconfig or in the one at Kubeconfig. Without it fleet.yaml does not say how.
	Context, Kubeconfig string
	// CacheDir keeps what was rendered; "" keeps nothing.
	CacheDir string
}

// Report is what the repo has.
type Report struct {
	FormatVersion string `json:"formatVersion"`
	// Repo is the folder.
	Repo string `json:"repo"`
	// Flux are the folders that clusters' Flux begin with.
	Flux []Flux `json:"flux"`
	// Providers that the repo has objects of, or installs.
	Providers []Provider `json:"providers"`
	// Clusters are the workload clusters that it declares.
	Clusters []fleetrepo.Cluster `json:"clusters"`
	// Problems are what could not be understood: what Flux applies there is not seen by the other commands either.
	Problems diag.Findings `json:"problems"`
	// Fleet is the fleet.yaml for it.
	Fleet string `json:"fleet"`
	// Written says that the command has written fleet.yaml.
	Written bool `json:"written"`
	// Hash is the commit with it; "" if there is none.
	Hash string `json:"commit,omitempty"`
}

// Flux is a folder at which a cluster's Flux begins, with the objects that Flux applies from there.
type Flux struct {
	roots.Root
	// Manages says that Flux applies Cluster API objects from this folder, so the cluster is a management cluster.
	Manages bool `json:"manages"`
	// Kustomizations and Objects are how many were followed, and found.
	Kustomizations int `json:"kustomizations"`
	Objects        int `json:"objects"`
	// Clusters are the workload clusters that it makes.
	Clusters int `json:"clusters"`
}

// Look reads the repo, and writes nothing. Errors: a repo that has a fleet.yaml, and one without Flux or without objects of Cluster API.
func Look(ctx context.Context, o Options) (*Report, error) {
	dir, declared, err := fleetrepo.FindAny(o.Dir)
	if err != nil {
		return nil, err
	}
	if declared {
		return nil, diag.Errorf("`fleetctl validate` looks at it", "the repo has a %s already: %s", v1alpha1.FileName,
			filepath.Join(dir, v1alpha1.FileName))
	}
	o.CacheDir = render.CacheFor(o.CacheDir, dir)
	needs := confine.Needs{Read: []string{dir}}
	if o.CacheDir != "" {
		needs.Write = []string{o.CacheDir}
	}
	report, err := Task.Run(ctx, question{dir, o.CacheDir, fleetrepo.NotOwn(gitrepo.IgnoredIn(ctx, dir))}, needs)
	if err != nil {
		return nil, err
	}
	fleet, err := report.fleet(o)
	if err != nil {
		return nil, err
	}
	text, err := encode(fleet)
	if err != nil {
		return nil, err
	}
	report.Fleet = string(text)
	// Lists that are empty are lists, too.
	report.Providers, report.Clusters = append([]Provider{}, report.Providers...), append([]fleetrepo.Cluster{}, report.Clusters...)
	report.Problems = append(diag.Findings{}, report.Problems...)
	return report, nil
}

// Write writes the fleet.yaml of a report into the repo, and no other file. It does not overwrite a fleet.yaml that was made meanwhile.
func (r *Report) Write() error {
	name := filepath.Join(r.Repo, v1alpha1.FileName)
	if err := atomicfile.Create(name, []byte(r.Fleet), 0o644); err != nil {
		return diag.Wrap("write "+name, err, "")
	}
	r.Written = true
	return nil
}

// Commit writes the fleet.yaml of a report into the repo, and commits this file and no other. Errors: the repo is not the top of a Git
// repository, its branch has no commit yet, or a fleet.yaml was made meanwhile.
func (r *Report) Commit(ctx context.Context) error {
	git, err := gitrepo.OpenFor("commit", r.Repo,
		"leave --commit out, and commit "+v1alpha1.FileName+" yourself: the repo is not the top of a Git repository")
	if err != nil {
		return err
	}
	if err := git.Recover(ctx); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(r.Repo, v1alpha1.FileName)); !errors.Is(err, fs.ErrNotExist) {
		return diag.Errorf("`fleetctl validate` looks at it", "the repo has a %s already: %s", v1alpha1.FileName, r.Repo)
	}
	base, err := git.Head()
	if err != nil {
		return err
	}
	changes := []gitrepo.Change{{Path: v1alpha1.FileName, Content: []byte(r.Fleet)}}
	r.Hash, _, err = git.CommitOnto(ctx, base, changes, "Declare what fleetctl has to know of this repo\n\nWritten by fleetctl adopt.\n",
		gitrepo.Author{})
	r.Written = err == nil
	return err
}

// mostProblems is how many of the things that could not be followed an error names.
const mostProblems = 5

// hiding are the problems that may hide clusters: what keeps a folder from being built, and submodules, but not the doubts.
func (r *Report) hiding() error {
	all := slices.DeleteFunc(slices.Clone(r.Problems), func(f diag.Finding) bool {
		return f.Severity != diag.SeverityError && f.Rule != render.RuleSubmodule && f.Rule != ruleNotApplied
	})
	switch {
	case len(all) == 0:
		return nil
	case len(all) <= mostProblems:
		return all
	}
	return fmt.Errorf("%w\n  and %d more", all[:mostProblems], len(all)-mostProblems)
}

// question is what the process that looks is asked. Ignored are files and folders of Dir that no commit gets.
type question struct {
	Dir, CacheDir string
	Ignored       []string
}

// Task is the part of Look that reads what the repo says.
var Task = confine.New("adopt", look)

func look(ctx context.Context, q question) (*Report, error) {
	files, err := render.Dir(q.Dir, q.Ignored...)
	if err != nil {
		return nil, err
	}
	fleet, err := roots.Assume(files, q.Dir)
	if err != nil {
		return nil, err
	}
	result, err := render.New(files, fleet, render.Options{CacheDir: q.CacheDir, Begin: confine.Watch(ctx), Time: confine.TimeLimit(ctx)}).All(
		ctx)
	if err != nil {
		return nil, err
	}
	report := &Report{
		FormatVersion: "1", Repo: q.Dir, Clusters: review.ManifestClusters(result), Providers: providersIn(result.Objects),
	}
	report.Problems = slices.Concat(result.Findings, render.Submodules(files, result.Kustomizations), passedOver(files, result.Files))
	for _, root := range roots.In(files) {
		report.Flux = append(report.Flux, countOf(root, result, report.Clusters))
	}
	return report, nil
}

// countOf counts what a cluster's Flux applies.
func countOf(root roots.Root, result *render.Result, clusters []fleetrepo.Cluster) Flux {
	f := Flux{Root: root}
	for _, k := range result.Kustomizations {
		if k.ManagementCluster == root.Name {
			f.Kustomizations++
		}
	}
	for _, o := range result.Objects {
		if o.ManagementCluster == root.Name {
			f.Objects++
			f.Manages = f.Manages || len(o.Targets) == 0 && ofClusterAPI(o)
		}
	}
	for _, c := range clusters {
		if c.ManagementCluster == root.Name {
			f.Clusters++
		}
	}
	return f
}

// ofClusterAPI tells of an object whether only a management cluster has a use for it.
func ofClusterAPI(o *render.Object) bool {
	group, _, _ := strings.Cut(o.APIVersion, "/")
	return group == "cluster.x-k8s.io" || strings.HasSuffix(group, ".cluster.x-k8s.io")
}

// fleet is the smallest Fleet that declares what the report has found.
func (r *Report) fleet(o Options) (*v1alpha1.Fleet, error) {
	fleet := &v1alpha1.Fleet{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind,
		Metadata: v1alpha1.Metadata{Name: cmp.Or(o.Name, roots.Label(filepath.Base(r.Repo), "fleet"))},
	}
	for _, f := range r.Flux {
		if !f.Manages {
			continue
		}
		m := v1alpha1.ManagementCluster{
			Name: f.Name, Path: f.Path, Host: v1alpha1.Host{Type: v1alpha1.HostExisting},
			Providers: r.providersFor(f.Name),
		}
		if o.Context != "" {
			m.Host.Existing = &v1alpha1.ExistingHost{Kubeconfig: o.Kubeconfig, Context: o.Context}
		}
		separate(&m, fleet.Spec.ManagementClusters)
		fleet.Spec.ManagementClusters = append(fleet.Spec.ManagementClusters, m)
		fleet.Spec.Git.URL, fleet.Spec.Git.Branch = cmp.Or(fleet.Spec.Git.URL, f.URL), cmp.Or(fleet.Spec.Git.Branch, f.Branch)
	}
	switch n := len(fleet.Spec.ManagementClusters); {
	case n == 0 && r.hiding() != nil: // what it could not follow may be where the clusters are
		return nil, diag.Wrap(fmt.Sprintf("look for clusters in what Flux applies of %s: some of it could not be followed", r.Repo), r.hiding(),
			"put that right, or leave it out of what Flux applies, and run the command again; `fleetctl validate` tells of all")
	case n == 0:
		return nil, diag.NotReady("`fleetctl validate` and `fleetctl render` work without a fleet.yaml; --repo names another folder",
			"nothing that Flux applies of %s is Cluster API's: it makes no clusters", r.Repo)
	case n > 1 && o.Context != "":
		return nil, diag.Usage("leave --context out, and write `existing: {context: NAME}` to the host of each in fleet.yaml",
			"the repo has %s, and one context is given", plain.Count(n, "management cluster"))
	}
	git := fleet.Spec.Git
	if git.URL == "" { // what Flux follows is not said in the repo
		if repo, err := gitrepo.Open(r.Repo); err == nil {
			if url, branch, err := repo.Remote(); err == nil {
				git.URL, git.Branch = url, cmp.Or(git.Branch, branch)
			}
		}
	}
	if git.URL != "" {
		if _, err := git.ParseURL(); err != nil || strings.Contains(git.URL, "${") {
			git.URL = ""
		}
	}
	if git.Branch == v1alpha1.DefaultBranch {
		git.Branch = ""
	}
	fleet.Spec.Git = git
	return fleet, nil
}

// separate gives a management cluster a folder of its own for the clusters that somebody adds to it, beside those of the same provider.
func separate(m *v1alpha1.ManagementCluster, others []v1alpha1.ManagementCluster) {
	taken := func() bool {
		return slices.ContainsFunc(others, func(o v1alpha1.ManagementCluster) bool { return o.Layout().Owned() == m.Layout().Owned() })
	}
	for i := 1; taken(); i++ {
		m.Cloud = m.Name
		if i > 1 {
			m.Cloud += "-" + strconv.Itoa(i)
		}
	}
}

// comment is what a reader of the file has to know first.
const comment = `# What fleetctl has to know of this repo, whose layout is its own. Each field is described in docs/reference/fleet.yaml.md.
`

// encode is the text of a fleet, which is held to what any fleet.yaml is held to.
func encode(fleet *v1alpha1.Fleet) ([]byte, error) {
	var b strings.Builder
	b.WriteString(comment)
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(v1alpha1.Node(fleet)); err != nil {
		return nil, fmt.Errorf("write %s: %w", v1alpha1.FileName, err)
	}
	if err := e.Close(); err != nil {
		return nil, fmt.Errorf("write %s: %w", v1alpha1.FileName, err)
	}
	text := []byte(b.String())
	if _, err := v1alpha1.Decode("new "+v1alpha1.FileName, text); err != nil {
		return nil, diag.Wrap("make a fleet.yaml for the repo", err, "--name gives the fleet another name")
	}
	return text, nil
}

// providersFor are the providers of infrastructure of a management cluster, and others whose version the repo says.
func (r *Report) providersFor(management string) []v1alpha1.Provider {
	var out []v1alpha1.Provider
	for _, p := range r.Providers {
		if !slices.Contains(p.ManagementClusters, management) || p.Version == "" && p.Type != string(v1alpha1.ProviderInfrastructure) {
			continue
		}
		one := v1alpha1.Provider{Name: p.Name, Type: v1alpha1.ProviderType(p.Type), Version: p.Version}
		if one.Type == v1alpha1.ProviderInfrastructure {
			one.Type = "" // which is the default
		}
		out = append(out, one)
	}
	return out
}
