package validate

import (
	"cmp"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/layout"
)

const (
	clusterFile = "cluster.yaml"
	// pruneAnnotation keeps Flux from deleting an object that was removed from Git.
	pruneAnnotation = "kustomize.toolkit.fluxcd.io/prune"
)

// placement checks the rules of the repo's folders and clusters.
type placement struct {
	tree  *tree
	fleet *v1alpha1.Fleet
	repo  *fleetrepo.Repo

	findings diag.Findings
	clusters []*cluster
	// charts has the HelmCharts in the folders of environments, by folder and name. The value tells whether the chart exists.
	charts map[[2]string]bool
}

// cluster is a folder that declares a cluster.
type cluster struct {
	dir, name   string
	environment string
	mgmt        *v1alpha1.ManagementCluster
	at          layout.Layout
	file        *file
	// release is the HelmRelease, or nil.
	release  *document
	declared *fleetrepo.Cluster
	findings diag.Findings
	// told says that the fault that keeps its chart from rendering is a finding about another file.
	told bool
}

func checkLayout(t *tree, fleet *v1alpha1.Fleet, repo *fleetrepo.Repo) *placement {
	l := &placement{tree: t, fleet: fleet, repo: repo, charts: map[[2]string]bool{}}
	if !fleet.HasPaths() {
		l.topFolders()
	}
	seen := map[string]bool{}
	for i := range fleet.Spec.ManagementClusters {
		if m := &fleet.Spec.ManagementClusters[i]; !seen[m.Dir()] {
			seen[m.Dir()] = true
			for _, at := range fleet.Layouts(m) {
				l.managementCluster(m, at)
			}
		}
	}
	l.providerFolders()
	l.networks()
	l.checkClusters()
	l.duplicates()
	for _, c := range l.clusters {
		l.findings = append(l.findings, c.findings...)
	}
	return l
}

func (l *placement) add(f diag.Finding) { l.findings = append(l.findings, f) }

// topFolders reports folders whose name is nearly that of a folder of the layout. Other folders are the team's own.
func (l *placement) topFolders() {
	known := []string{layout.AddonsDir, "charts", "features", "providers", "tenants"}
	for _, name := range l.tree.folders["."] {
		if _, folder := l.tree.folders[name]; !folder || slices.Contains(known, name) {
			continue
		}
		if nearest := diag.Nearest(name, known); nearest != "" && len(nearest)-len(name) <= 2 {
			l.folder(name, "nothing looks into the folder "+name, "did you mean "+nearest+"?")
		}
	}
}

// folder adds a finding about a folder. It points at the folder's first file.
func (l *placement) folder(dir, summary, hint string) {
	if at := l.firstFile(dir); at != "" { // an empty folder is not in Git
		l.add(finding(RuleFolder, at, 1, 0, summary, hint))
	}
}

func (l *placement) firstFile(dir string) string {
	if files := l.tree.below(dir); len(files) > 0 {
		return files[0].path
	}
	return ""
}

// subfolders lists the folders in a folder, without the folders that nothing applies.
func (l *placement) subfolders(dir string) []string {
	var out []string
	for _, name := range l.tree.folders[dir] {
		if _, folder := l.tree.folders[path.Join(dir, name)]; folder && !strings.HasPrefix(name, ".") {
			out = append(out, name)
		}
	}
	return out
}

// providerFolders reports folders in providers/ that belong to no management cluster.
func (l *placement) providerFolders() {
	generations := map[string][]string{}
	for i := range l.fleet.Spec.ManagementClusters {
		for _, at := range l.fleet.Layouts(&l.fleet.Spec.ManagementClusters[i]) {
			generations[at.Owned()] = []string{"clusters"}
			if at.IsHome() {
				generations[at.Owned()] = []string{"clusters", "mgmt", layout.HandedOverDir}
			}
		}
	}
	for _, cloud := range l.subfolders("providers") {
		for _, generation := range l.subfolders(path.Join("providers", cloud)) {
			dir := path.Join("providers", cloud, generation)
			folders := generations[dir]
			if folders == nil {
				l.folder(dir, "no management cluster of fleet.yaml has the folder "+dir,
					"say `cloud: "+cloud+"` and `generation: "+generation+"` of the one that has")
				continue
			}
			for _, name := range l.subfolders(dir) {
				if !slices.Contains(folders, name) {
					l.folder(path.Join(dir, name), "nothing looks into the folder "+path.Join(dir, name),
						"a management cluster has mgmt and clusters, and in a further cloud clusters alone")
				}
			}
		}
	}
}

// networks reports charts that name a network that the repo does not have.
func (l *placement) networks() {
	dir := path.Dir(layout.CNIDir("x"))
	for _, flavour := range l.subfolders(layout.ChartsDir) {
		f := l.tree.byPath[path.Join(layout.ChartsDir, flavour, "Chart.yaml")]
		if f == nil || len(f.documents) == 0 {
			continue
		}
		at := yamledit.Find(f.documents[0].node, "annotations", fleetrepo.CNIAnnotation)
		if at == nil || at.Value == "" || at.Value == fleetrepo.CNIRequired || l.tree.has(path.Join(dir, at.Value)) {
			continue
		}
		hint := fmt.Sprintf("`fleetctl cni add %s --from FILE` adds it", diag.ShellWord(at.Value))
		if nearest := diag.Nearest(at.Value, append(l.subfolders(dir), fleetrepo.CNIRequired)); nearest != "" {
			hint = "did you mean " + nearest + "?"
		}
		l.add(finding(RuleMissingNetwork, f.path, at.Line, at.Column,
			fmt.Sprintf("annotations[%s]: there is no network %.60q in %s", fleetrepo.CNIAnnotation, at.Value, dir), hint))
	}
}

// managementCluster checks the environments and clusters of a management cluster in one cloud.
func (l *placement) managementCluster(m *v1alpha1.ManagementCluster, at layout.Layout) {
	base, known := at.Clusters(), l.fleet.EnvironmentNames()
	for _, environment := range l.subfolders(base) {
		dir := path.Join(base, environment)
		if !slices.Contains(known, environment) {
			hint := "`" + diag.ShellCommand("fleetctl", "environment", "add", environment) + "` adds it"
			if nearest := diag.Nearest(environment, known); nearest != "" {
				hint = "did you mean " + nearest + "?"
			}
			if at := l.firstFile(dir); at != "" {
				l.add(finding(RuleEnvironment, at, 1, 0, fmt.Sprintf("fleet.yaml has no environment %s", environment), hint))
			}
		}
		l.sharedCharts(m, environment, dir)
		for _, name := range l.subfolders(dir) {
			if name != layout.CommonDir {
				l.cluster(m, at, environment, path.Join(dir, name))
			}
		}
	}
}

// cluster checks the folder of a cluster.
func (l *placement) cluster(m *v1alpha1.ManagementCluster, at layout.Layout, environment, dir string) {
	c := &cluster{dir: dir, name: path.Base(dir), environment: environment, mgmt: m, at: at, file: l.tree.byPath[path.Join(dir, clusterFile)]}
	if c.file == nil {
		if at := l.firstFile(dir); at != "" {
			l.add(finding(RuleClusterFile, at, 1, 0, fmt.Sprintf("the folder %s has no %s", dir, clusterFile),
				"a cluster is declared there; what its environment's clusters have in common goes into "+layout.CommonDir))
		}
		return
	}
	l.clusters = append(l.clusters, c)
	for _, d := range c.file.documents {
		if kindOf(d) == "HelmRelease" {
			c.release = d
			return
		}
	}
	if !c.file.broken {
		l.add(finding(RuleClusterFile, c.file.path, 1, 0, c.file.path+" declares no cluster", "a cluster is a HelmRelease of a chart in charts/"))
	}
}

func kindOf(d *document) string {
	kind, _ := d.object["kind"].(string)
	return kind
}

// checkClusters checks all clusters concurrently.
func (l *placement) checkClusters() {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, c := range l.clusters {
		if c.release != nil {
			group.Go(func() error {
				l.checkCluster(c)
				return nil
			})
		}
	}
	_ = group.Wait() // no function returns an error
}

func (l *placement) checkCluster(c *cluster) {
	var values diag.Findings
	c.declared, values = l.repo.Judge(
		fleetrepo.Place{File: c.file.path, Environment: c.environment, ManagementCluster: c.mgmt, Layout: c.at}, c.release.node)
	c.findings = append(c.findings, l.tree.unsaid(values)...)
	if c.declared == nil {
		return
	}
	c.names()
	c.protection(l.tree)
	c.chart(l)
}

// names checks that folder, HelmRelease and namespaces have one name, because fleetctl finds a cluster by its folder.
func (c *cluster) names() {
	for _, n := range []struct {
		path yamledit.Path
		what string
	}{
		{yamledit.Path{"metadata", "name"}, "its HelmRelease"},
		{yamledit.Path{"metadata", "namespace"}, "the namespace of its HelmRelease"},
		{yamledit.Path{"spec", "releaseName"}, "its Helm release"},
		{yamledit.Path{"spec", "targetNamespace"}, "the namespace that it is installed in"},
	} {
		node := yamledit.Find(c.release.node, n.path...)
		if node == nil && n.path[0] == "spec" || node != nil && node.Value == c.name {
			continue
		}
		is := "missing"
		if node != nil {
			is = fmt.Sprintf("%.60q", node.Value)
		}
		at := locate(c.release.node, n.path.String())
		c.findings = append(c.findings, finding(RuleClusterName, c.file.path, at.Line, at.Column,
			fmt.Sprintf("%s: the folder is called %s, %s is %s", n.path, c.name, n.what, is), "call all of them "+c.name))
	}
	for _, d := range c.file.documents {
		if kindOf(d) != "Namespace" {
			continue
		}
		if node := yamledit.Find(d.node, "metadata", "name"); node != nil && node.Value != c.name {
			c.findings = append(c.findings, finding(RuleClusterName, c.file.path, node.Line, node.Column,
				fmt.Sprintf("metadata.name: the folder is called %s, its namespace is %.60q", c.name, node.Value), "call all of them "+c.name))
		}
	}
}

// protection checks the prune protection: without it, Flux would delete a cluster whose files were removed by mistake. Only `fleetctl
// cluster remove` takes it off, in its first step and only from the HelmRelease.
func (c *cluster) protection(t *tree) {
	for _, f := range t.below(c.dir) {
		for _, d := range f.documents {
			namespace := kindOf(d) == "Namespace" && nameOf(d.object) == c.name
			if !namespace && d != c.release || d == c.release && c.declared.Removing {
				continue
			}
			if node := yamledit.Find(d.node, "metadata", "annotations", pruneAnnotation); node != nil && node.Value == "disabled" {
				continue
			}
			at := locate(d.node, "metadata.annotations."+pruneAnnotation)
			c.findings = append(c.findings, finding(RulePrune, f.path, at.Line, at.Column,
				fmt.Sprintf("the %s of cluster %s has no prune protection: Flux deletes it when it leaves Git", kindOf(d), c.name),
				"annotate it with "+pruneAnnotation+": disabled; `fleetctl cluster remove` is the way to delete a cluster"))
		}
	}
}

// initialised tells whether a management cluster's Flux is in the repo.
func (l *placement) initialised(m *v1alpha1.ManagementCluster) bool {
	return l.tree.has(path.Join(m.Dir(), "flux-system"))
}

// duplicates reports clusters of one name that would share a namespace of their management cluster, and clusters of one name in one
// environment, which no command could tell apart.
func (l *placement) duplicates() {
	first := map[[2]string]*cluster{}
	slices.SortStableFunc(l.clusters, func(a, b *cluster) int { return cmp.Compare(a.dir, b.dir) })
	for _, c := range l.clusters {
		line := 1
		if c.release != nil {
			line = c.release.node.Line
		}
		at, in := [2]string{c.mgmt.Dir(), c.name}, [2]string{"environment " + c.environment, c.name} // no folder has such a name
		switch {
		case first[at] != nil:
			c.findings = append(c.findings, finding(RuleDuplicateName, c.file.path, line, 0,
				fmt.Sprintf("cluster %s is in %s as well: both would be in the namespace %s", c.name, first[at].dir, c.name), "choose another name"))
			continue
		case first[in] != nil:
			c.findings = append(c.findings, finding(RuleDuplicateName, c.file.path, line, 0,
				fmt.Sprintf("cluster %s is in %s as well: no command can tell the two clusters of environment %s apart", c.name, first[in].dir,
					c.environment), "choose another name"))
		}
		first[at], first[in] = c, cmp.Or(first[in], c)
	}
}
