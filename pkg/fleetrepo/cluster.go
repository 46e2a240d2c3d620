package fleetrepo

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// Cluster is a workload cluster as its file declares it.
type Cluster struct {
	Name              string `json:"name"`
	Environment       string `json:"environment"`
	ManagementCluster string `json:"managementCluster"`
	Flavour           string `json:"flavour"`
	KubernetesVersion string `json:"kubernetesVersion"`
	// ControlPlane is the number of control plane nodes. It is nil if the file does not say, because the chart's
	// default counts, or the cloud runs the control plane itself.
	ControlPlane *int   `json:"controlPlaneReplicas,omitempty"`
	Pools        []Pool `json:"pools"`
	// Paused says that changes in Git do not reach the cluster.
	Paused bool `json:"paused"`
	// Removing says that the cluster has lost its protection, and is deleted when its file is removed.
	Removing bool `json:"removing,omitempty"`
	// Manifests says that the repo has the cluster as Cluster API objects in any folder that Flux applies, and not in a
	// folder of the layout. Commands that change a cluster's values refuse such a cluster. Its Namespace is that of the
	// objects, and its Flavour is the kind of its infrastructure, or its class.
	Manifests bool   `json:"manifests,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// Unprotected says that Flux deletes the cluster when its file is removed from Git.
	Unprotected bool `json:"unprotected,omitempty"`
	// File declares the cluster. Line is where its HelmRelease, or its Cluster, starts.
	File string `json:"file"`
	Line int    `json:"line"`
}

// Pool is a group of worker nodes. It has Replicas, or Min and Max.
type Pool struct {
	Name              string `json:"name"`
	Replicas          *int   `json:"replicas,omitempty"`
	Min               *int   `json:"min,omitempty"`
	Max               *int   `json:"max,omitempty"`
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	Line              int    `json:"line"`
}

// Size describes for a person how many nodes the pool has: 3, or 1-5.
func (p Pool) Size() string {
	switch {
	case p.Replicas != nil:
		return strconv.Itoa(*p.Replicas)
	case p.Min != nil && p.Max != nil:
		return fmt.Sprintf("%d-%d", *p.Min, *p.Max)
	}
	return "?"
}

// Nodes is the size with its noun: 1 node, or 1-5 nodes.
func (p Pool) Nodes() string {
	if p.Replicas != nil {
		return plain.Count(*p.Replicas, "node")
	}
	return p.Size() + " nodes"
}

// place is the location of a cluster's file before the file is read.
type place struct {
	file, environment string
	mgmt              *v1alpha1.ManagementCluster
	// at is the layout of the management cluster for the cloud of the folder
	at layout.Layout
}

// declared is a cluster with the content of its file, for edits.
type declared struct {
	Cluster
	mgmt     *v1alpha1.ManagementCluster
	at       layout.Layout
	src      []byte
	document int // of the HelmRelease
	node     *yaml.Node
}

// Clusters lists all clusters, by environment and name. It also returns findings for files that cannot be read.
func (r *Repo) Clusters() ([]Cluster, diag.Findings, error) {
	places, err := r.places("")
	if err != nil {
		return nil, nil, err
	}
	clusters, findings := make([]*declared, len(places)), make([]error, len(places))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, p := range places {
		group.Go(func() error {
			clusters[i], findings[i] = r.load(p)
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	all, problems := make([]Cluster, 0, len(places)), diag.Findings{}
	for i := range places {
		switch {
		case findings[i] != nil:
			problems = append(problems, findingsOf(places[i].file, findings[i])...)
		case clusters[i] != nil:
			all = append(all, clusters[i].Cluster)
		}
	}
	slices.SortFunc(all, func(a, b Cluster) int {
		return cmp.Or(cmp.Compare(a.Environment, b.Environment), cmp.Compare(a.Name, b.Name), cmp.Compare(a.File, b.File))
	})
	return all, problems, nil
}

// Names returns the names of all clusters, which are the names of their folders. It opens no file.
func (r *Repo) Names() []string {
	places, err := r.places("")
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(places))
	for _, p := range places {
		names = append(names, p.name())
	}
	return sortedSet(names)
}

// places finds the files that declare clusters, in folders called name, or in all folders if name is empty.
func (r *Repo) places(name string) ([]place, error) {
	var all []place
	for i := range r.Fleet.Spec.ManagementClusters {
		m := &r.Fleet.Spec.ManagementClusters[i]
		for _, at := range r.Fleet.Layouts(m) {
			found, err := r.placesIn(m, at, name)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// placesIn is places for one cloud of a management cluster.
func (r *Repo) placesIn(m *v1alpha1.ManagementCluster, at layout.Layout, name string) ([]place, error) {
	var all []place
	environments, err := r.folders(at.Clusters())
	if err != nil {
		return nil, err
	}
	for _, environment := range environments {
		names := []string{name}
		if name == "" {
			if names, err = r.folders(at.Environment(environment)); err != nil {
				return nil, err
			}
		}
		for _, n := range names {
			file := path.Join(at.Cluster(environment, n), clusterFile)
			if n != layout.CommonDir && (name == "" || r.exists(file)) {
				all = append(all, place{file, environment, m, at})
			}
		}
	}
	return all, nil
}

// load reads a cluster's file. It returns nil if the file is missing or has no HelmRelease, because then the folder is not a cluster's.
func (r *Repo) load(p place) (*declared, error) {
	src, err := r.read(p.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseCluster(p, src)
}

func parseCluster(p place, src []byte) (*declared, error) {
	documents, err := documentsOf(p.file, src)
	if err != nil {
		return nil, err
	}
	for i, node := range documents {
		if isRelease(node) {
			return declaredIn(p, src, i, node), nil
		}
	}
	return nil, nil
}

func isRelease(node *yaml.Node) bool {
	return text(yamledit.Lookup(node, "kind")) == "HelmRelease" &&
		strings.HasPrefix(text(yamledit.Lookup(node, "apiVersion")), "helm.toolkit.fluxcd.io/")
}

// declaredIn reads the HelmRelease that declares a cluster.
func declaredIn(p place, src []byte, document int, node *yaml.Node) *declared {
	c := &declared{mgmt: p.mgmt, at: p.at, src: src, document: document, node: node}
	c.Cluster = Cluster{
		Name:        text(yamledit.Find(node, "metadata", "name")),
		Environment: p.environment, ManagementCluster: p.mgmt.Name, File: p.file, Line: node.Line,
		Flavour:           flavourOf(p.environment, node),
		KubernetesVersion: text(c.value("kubernetesVersion")),
		ControlPlane:      number(c.value("controlPlane", "replicas")),
		Pools:             []Pool{},
		Paused:            text(yamledit.Find(node, "spec", "suspend")) == "true",
		Removing:          text(yamledit.Find(node, "metadata", "annotations", removeAnnotation)) != "",
	}
	if pools := c.value("pools"); pools != nil {
		for _, pool := range pools.Content {
			c.Pools = append(c.Pools, poolOf(yamledit.Resolve(pool)))
		}
	}
	return c
}

// flavourOf returns the chart of a HelmRelease: of the HelmChart that the environment's clusters share, or its own
// chart. A chart from another source is called by its name there.
func flavourOf(environment string, node *yaml.Node) string {
	ref := yamledit.Find(node, "spec", "chartRef")
	if ref == nil {
		return path.Base(text(yamledit.Find(node, "spec", "chart", "spec", "chart")))
	}
	name := text(yamledit.Lookup(ref, "name"))
	if flavour, ok := layout.FlavourOf(environment, name); ok && text(yamledit.Lookup(ref, "kind")) == "HelmChart" {
		return flavour
	}
	return name
}

// Place is a file of the repo whose path declares a cluster.
type Place struct {
	// File is slash-separated, from the top of the repo.
	File string
	// Environment and ManagementCluster belong to the folder.
	Environment       string
	ManagementCluster *v1alpha1.ManagementCluster
	// Layout of the management cluster for the cloud of the folder.
	Layout layout.Layout
}

// Judge reads the cluster that a HelmRelease in a file declares, and returns it with the chart's findings about its values. It returns nil
// for any other node. Several goroutines may call it.
func (r *Repo) Judge(at Place, node *yaml.Node) (*Cluster, diag.Findings) {
	if !isRelease(node) {
		return nil, nil
	}
	c := declaredIn(place{at.File, at.Environment, at.ManagementCluster, at.Layout}, nil, 0, node)
	if !slices.Contains(r.Flavours(), c.Flavour) {
		return &c.Cluster, nil // other rules report a missing chart
	}
	ch, err := r.chart(c.Flavour)
	if err == nil {
		err = c.check(ch)
	}
	if err == nil {
		return &c.Cluster, nil
	}
	findings := findingsOf(at.File, err)
	for i := range findings {
		if findings[i].Line == 0 {
			findings[i].Line = node.Line
		}
	}
	return &c.Cluster, findings
}

func poolOf(n *yaml.Node) Pool {
	return Pool{
		Name: text(yamledit.Lookup(n, "name")), Replicas: number(yamledit.Lookup(n, "replicas")), Min: number(yamledit.Lookup(n, "min")),
		Max: number(yamledit.Lookup(n, "max")), KubernetesVersion: text(yamledit.Lookup(n, "kubernetesVersion")), Line: n.Line,
	}
}

// value returns the node of a value of the chart, or nil.
func (c *declared) value(path ...any) *yaml.Node {
	return yamledit.Find(c.node, append([]any{"spec", "values"}, path...)...)
}

// text returns the value of a scalar; "" for another node.
func text(n *yaml.Node) string { return yamledit.Text(n) }

func number(n *yaml.Node) *int {
	i, err := strconv.Atoi(text(n))
	if err != nil {
		return nil
	}
	return &i
}

// Cluster returns the cluster with that name. If several have the name, it has to be environment/name. The error names
// the most similar name.
func (r *Repo) Cluster(name string) (*Cluster, error) {
	c, err := r.find(name)
	if err != nil {
		return nil, err
	}
	return &c.Cluster, nil
}

func (r *Repo) find(given string) (*declared, error) {
	environment, name, qualified := strings.Cut(given, "/")
	if !qualified {
		environment, name = "", given
	}
	var places []place
	if !strings.ContainsAny(name, `/\.`) && name != "" {
		var err error
		if places, err = r.places(name); err != nil {
			return nil, err
		}
	}
	choices := make([]string, 0, len(places))
	for _, p := range places {
		choices = append(choices, p.environment+"/"+name)
	}
	if environment != "" {
		places = slices.DeleteFunc(places, func(p place) bool { return p.environment != environment })
	}
	switch len(places) {
	case 0:
		if len(choices) > 0 {
			return nil, diag.Usage("there is: "+strings.Join(sortedSet(choices), ", "), "there is no cluster %q", given)
		}
		if err := r.notDeclared(environment, name); err != nil {
			return nil, err
		}
		return nil, &UnknownClusterError{Name: given, err: diag.Unknown("cluster", given, r.Names(), r.NoCluster())}
	case 1:
		c, err := r.load(places[0])
		if err != nil {
			return nil, findingsOf(places[0].file, err)
		}
		if c == nil {
			return nil, diag.Errorf("look into it: a cluster is a HelmRelease of a chart", "%s declares no cluster", places[0].file)
		}
		return c, nil
	}
	for i, p := range places {
		if other := slices.IndexFunc(places[:i], func(q place) bool { return q.environment == p.environment }); other >= 0 {
			return nil, diag.Errorf(
				"rename one of them in an editor: its folder, HelmRelease, release and namespace; `fleetctl validate` tells what is left to do",
				"environment %s has two clusters that are called %s: %s and %s", p.environment, name, places[other].file, p.file)
		}
	}
	return nil, diag.Usage("choose one: "+strings.Join(sortedSet(choices), ", "), "several clusters are called %s", name)
}

// findingsOf turns an error into findings about a file.
func findingsOf(file string, err error) diag.Findings {
	if findings, ok := errors.AsType[diag.Findings](err); ok {
		return findings
	}
	return diag.Findings{{Severity: diag.SeverityError, Rule: v1alpha1.RuleSyntax, File: file, Summary: err.Error(), Hint: diag.Hint(err)}}
}

// documentsOf returns the documents of a file that people edit. The error is a finding with the place of the mistake.
func documentsOf(file string, src []byte) ([]*yaml.Node, error) {
	documents, err := yamledit.Parse(src)
	if err == nil {
		return documents, nil
	}
	line, column, summary := yamledit.Place(src, err)
	if line > 0 {
		summary = "not valid YAML: " + summary
	}
	return nil, diag.Findings{{
		Severity: diag.SeverityError, Rule: v1alpha1.RuleSyntax, File: file, Line: max(line, 1), Column: column, Summary: summary,
		Hint: diag.Hint(err),
	}}
}

// NoCluster returns the hint for a name that no chart's cluster has. In an adopted fleet, clusters may be manifests,
// which no command edits.
func (r *Repo) NoCluster() string {
	for _, m := range r.Fleet.Spec.ManagementClusters {
		if m.Path != "" {
			return "commands change only clusters that come from charts; to change a cluster of manifests, edit its file, " +
				"which `fleetctl cluster list` names"
		}
	}
	return "`fleetctl cluster add` makes one"
}
