package fleetrepo

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/within"
	"github.com/fleetctl/fleetctl/templates"
)

const (
	// pruneAnnotation keeps Flux from deleting objects whose files leave Git.
	pruneAnnotation = "kustomize.toolkit.fluxcd.io/prune"
	// removeAnnotation marks a cluster that has lost its protection.
	removeAnnotation = "fleetctl.dev/remove"
)

// unkeepPatch removes the annotation with the value keep from the Cluster. No other value would help: Helm deletes only
// objects without the annotation.
const unkeepPatch = `kustomize:
  patches:
  - target:
      group: cluster.x-k8s.io
      kind: Cluster
    patch: |
      - op: remove
        path: /metadata/annotations/` + keepPointer + `
`

// keepPointer is the annotation helm.sh/resource-policy in a JSON pointer.
const keepPointer = "helm.sh~1resource-policy"

// unkeep is a post-renderer that lets Helm delete the Cluster although its chart says keep. Cluster API then deletes,
// in order, everything that the Cluster owns.
func unkeep() (*yaml.Node, error) {
	documents, err := yamledit.Parse([]byte(unkeepPatch))
	if err != nil {
		return nil, err
	}
	return documents[0], nil
}

// Removal is a step of the removal of a cluster.
type Removal struct {
	Edit
	// Deletes says that this step deletes the cluster. The step before only removes its protection.
	Deletes bool
	// Cluster that is removed.
	Cluster Cluster
}

// Remove returns the next of two steps. The first step removes the protection of a cluster's HelmRelease and Cluster,
// and deletes nothing. The second step, once Flux has applied the first, removes the files, and with them the cluster.
// A paused cluster is refused, and one of a paused environment, because Flux would apply neither step. seen says that the caller has seen
// on the management cluster that Flux has applied the first step; without it, the second step has a note.
func (r *Repo) Remove(name string, seen bool) (*Removal, error) {
	c, err := r.find(name)
	if err != nil {
		return nil, err
	}
	if c.Paused {
		return nil, diag.Errorf("run `fleetctl cluster resume "+name+"` first",
			"cluster %s is paused: Flux would not delete it, only forget it", c.Name)
	}
	if r.isPaused(c.at.ClustersFile(c.Environment)) {
		return nil, diag.Errorf("run `fleetctl environment resume "+c.Environment+"` first",
			"environment %s of cluster %s is paused: Flux would not delete it, only forget it", c.Environment, c.Name)
	}
	if r.manages(c.mgmt, c.Name) {
		return nil, diag.Errorf("remove its clusters, run `fleetctl teardown --management "+c.Name+
			"`, and remove it from fleet.yaml: then it is a workload cluster like any other",
			"cluster %s is a management cluster of this fleet", c.Name)
	}
	if c.Removing {
		return r.removeFiles(c, seen)
	}
	changes := []change{
		set("enabled", "metadata", "annotations", pruneAnnotation),
		set("requested", "metadata", "annotations", removeAnnotation),
		set(true, "spec", "uninstall", "disableWait"),
	}
	keeps, err := r.keeps(c.Flavour)
	if err != nil {
		return nil, err
	}
	if keeps {
		patch, err := unkeep()
		if err != nil {
			return nil, err
		}
		changes = append(changes, add(patch, "spec", "postRenderers"))
	}
	e, err := r.around(c, fmt.Sprintf("Remove the protection of cluster %s, to delete it", c.Name), changes...)
	if err != nil {
		return nil, err
	}
	e.Notes = append(e.Notes,
		"Step 1 of 2: nothing is deleted yet. `fleetctl cluster remove "+name+" --cancel` undoes it.",
		"When Flux has applied this commit, run `fleetctl cluster remove "+name+"` again: that deletes "+c.contents()+".",
		"The load balancers and volumes that Kubernetes has made in its cloud stay there, unless you run `fleetctl cluster drain "+name+
			"` before that.")
	return &Removal{Edit: *e, Cluster: c.Cluster}, nil
}

// keeps tells whether the chart of a flavour keeps its Cluster. A team's own chart may not, and then there is no
// annotation to remove.
func (r *Repo) keeps(flavour string) (bool, error) {
	ch, err := r.chart(flavour)
	if err != nil {
		return false, err
	}
	dir := path.Join(layout.ChartsDir, flavour, "templates")
	found := false
	look := func(read func(name string) ([]byte, error)) fs.WalkDirFunc {
		return func(name string, entry fs.DirEntry, err error) error {
			if err != nil || found || !entry.Type().IsRegular() {
				return err
			}
			content, err := read(name)
			found = found || strings.Contains(string(content), "helm.sh/resource-policy")
			return err
		}
	}
	if ch.inRepo {
		err = within.WalkDir(r.Dir, dir, look(r.read))
	} else {
		err = fs.WalkDir(templates.Charts, dir, look(templates.Charts.ReadFile))
	}
	if err != nil {
		return false, fmt.Errorf("read the chart of flavour %s: %w", flavour, err)
	}
	return found, nil
}

// removeFiles removes all files in the cluster's folder. seen says that the caller has seen that Flux has applied the
// first step.
func (r *Repo) removeFiles(c *declared, seen bool) (*Removal, error) {
	out := &Removal{Edit: Edit{Summary: "Remove cluster " + c.Name, Environments: []string{c.Environment}}, Deletes: true, Cluster: c.Cluster}
	if err := r.after(&out.Edit, c); err != nil {
		return nil, err
	}
	if err := r.takeOut(&out.Edit, c); err != nil {
		return nil, err
	}
	out.Notes = append(out.Notes, "Step 2 of 2: this deletes "+c.contents()+".")
	if !seen {
		out.Notes = append(out.Notes, "It was not checked whether Flux has applied step 1: if Flux sees both steps at once, the cluster stays, "+
			"and nothing manages it any more. `fleetctl status` shows the commit that Flux is at; with --wait, this command waits for it first.")
	}
	out.Notes = append(out.Notes, "The namespace "+c.Name+
		" stays on the management cluster, for what Cluster API still needs in it. --wait deletes it in the end; without it, when `fleetctl "+
		"status` no longer shows the cluster: kubectl delete namespace "+c.Name)
	return out, nil
}

// dropChart removes the HelmChart of a cluster's flavour together with the last cluster of its environment that shares
// it, unless somebody has changed it.
func (r *Repo) dropChart(e *Edit, c *declared) error {
	if !r.exists(c.at.EnvironmentChart(c.Environment, c.Flavour)) {
		return nil // the cluster has its own chart, or a chart from another source
	}
	file, err := scaffold.EnvironmentChart(c.at, c.Environment, c.Flavour)
	if err != nil {
		return err
	}
	there, err := r.read(file.Path)
	if err != nil {
		return fmt.Errorf("read the chart of flavour %s: %w", c.Flavour, err)
	}
	if !manifest.SameText(there, file.Content) {
		return nil
	}
	places, err := r.places("")
	if err != nil {
		return err
	}
	for _, p := range places {
		if p.mgmt != c.mgmt || p.at != c.at || p.environment != c.Environment || p.file == c.File {
			continue
		}
		other, err := r.load(p)
		shares := err != nil // a cluster that cannot be read may share it
		if other != nil {
			shares = text(yamledit.Find(other.node, "spec", "chartRef", "name")) == layout.ChartName(c.Environment, c.Flavour)
		}
		if shares {
			return nil
		}
	}
	e.Changes.Delete(file.Path)
	return r.listed(&e.Changes, path.Dir(file.Path), path.Base(file.Path), false)
}

// after makes an edit wait for the last change of a cluster's file.
func (r *Repo) after(e *Edit, c *declared) (err error) {
	step := FollowsStep{File: c.File, Remote: r.Fleet.Spec.Git.URL != ""}
	if step.Tag, err = r.tagOf(c.mgmt, r.Fleet.ChannelOf(c.Environment).Name); err != nil {
		return err
	}
	e.Checks = append(e.Checks, step)
	return nil
}

// CancelRemove protects a cluster again.
func (r *Repo) CancelRemove(name string) (*Edit, error) {
	c, err := r.find(name)
	if err != nil {
		return nil, err
	}
	summary := fmt.Sprintf("Protect cluster %s again", c.Name)
	if !c.Removing {
		return &Edit{Summary: summary}, nil
	}
	changes := []change{
		set("disabled", "metadata", "annotations", pruneAnnotation),
		remove("metadata", "annotations", removeAnnotation),
	}
	if n := yamledit.Find(c.node, "spec", "uninstall"); n != nil && len(n.Content) == 2 {
		changes = append(changes, remove("spec", "uninstall"))
	} else {
		changes = append(changes, remove("spec", "uninstall", "disableWait"))
	}
	if list := yamledit.Find(c.node, "spec", "postRenderers"); list != nil {
		for i, item := range list.Content {
			if !strings.Contains(text(yamledit.Find(item, "kustomize", "patches", 0, "patch")), keepPointer) {
				continue
			}
			if len(list.Content) == 1 {
				changes = append(changes, remove("spec", "postRenderers"))
			} else {
				changes = append(changes, remove("spec", "postRenderers", i))
			}
			break
		}
	}
	return r.around(c, summary, changes...)
}

// contents describes the machines of a cluster.
func (c *declared) contents() string {
	parts := []string{"cluster " + c.Name + " in " + c.Environment}
	if c.ControlPlane != nil {
		parts = append(parts, fmt.Sprintf("its control plane (%s)", plain.Count(*c.ControlPlane, "node")))
	} else {
		parts = append(parts, "its control plane")
	}
	for _, p := range c.Pools {
		parts = append(parts, fmt.Sprintf("pool %s (%s)", p.Name, p.Nodes()))
	}
	return strings.Join(parts, ", ") + ", and all that runs and is stored there"
}
