package validate

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
)

const (
	reconcileAnnotation = "kustomize.toolkit.fluxcd.io/reconcile"
	keepAnnotation      = "helm.sh/resource-policy"
)

// checkProtection checks the prune protection of clusters as Flux applies them. A patch of an environment may remove the annotation that
// the cluster's file has, and a chart may make a Cluster that Helm deletes with the release.
func (r *run) checkProtection(all []*object, clusters []*cluster) diag.Findings {
	files, folders := map[string]*cluster{}, map[string]*cluster{}
	for _, c := range clusters {
		files[c.file.path], folders[c.dir] = c, c
	}
	reported := map[string]bool{} // templates
	homes := r.manifestHomes()
	unpruned := r.unpruned()
	parts := openParts(all, unpruned)
	var out diag.Findings
	for _, o := range all {
		kept := o.Template == "" && unpruned[ownerOn{o.places()[0], o.Owner}]
		if o.content != nil || kept && !render.IsCluster(o.Object) {
			continue
		}
		c := folders[path.Dir(o.Source.File)]
		switch {
		case render.IsCluster(o.Object):
			of := files[o.Source.File]
			if removing := of != nil && of.declared != nil && of.declared.Removing; removing || reported[o.Template] {
				continue
			}
			open := parts[bodyOf(o)]
			switch {
			case !kept && !o.isProtected():
				reported[o.Template] = o.Template != ""
				out = append(out, r.unprotectedCluster(o, open))
			case o.Template == "" && len(open) > 0:
				out = append(out, unprotectedParts(o, open)...)
			}
		case c == nil && o.Kind == "Namespace" && homes[known{place: o.places()[0], name: o.Name}] != "":
			if !o.isProtected() {
				out = append(out, o.at("metadata.annotations."+pruneAnnotation, RulePrune,
					fmt.Sprintf("cluster %s is in it, and it has no prune protection: Flux deletes both when it leaves Git",
						homes[known{place: o.places()[0], name: o.Name}]),
					"annotate it with "+pruneAnnotation+": disabled"))
			}
		case o.Template != "" || c == nil || o.Name != c.name || c.declared == nil:
		case o.Kind == "Namespace", o.Kind == "HelmRelease" && !c.declared.Removing:
			if !o.isProtected() {
				out = append(out, c.patchedAway(o)...)
			}
		}
	}
	return out
}

// body is what the objects of one cluster have in common.
type body struct{ mgmt, environment, cluster string }

func bodyOf(o *object) body { return body{o.ManagementCluster, o.Environment, o.Cluster} }

// openParts returns the objects of clusters that Flux deletes when they leave Git, and machines or infrastructure with them: that the
// Cluster stays does not keep these.
func openParts(all []*object, unpruned map[ownerOn]bool) map[body][]*object {
	out := map[body][]*object{}
	for _, o := range all {
		if o.content != nil || o.Template != "" || o.Cluster == "" || len(o.Targets) > 0 || !render.HoldsMachines(o.Object) ||
			unpruned[ownerOn{o.places()[0], o.Owner}] || o.isProtected() {
			continue
		}
		out[bodyOf(o)] = append(out[bodyOf(o)], o)
	}
	return out
}

// unprotectedParts are the findings about the open parts of a protected Cluster. Each has one, so that a comment can silence the one about
// a pool that is to go.
func unprotectedParts(cluster *object, open []*object) (out diag.Findings) {
	for _, o := range open {
		out = append(out, o.at("metadata.annotations."+pruneAnnotation, RulePrune,
			fmt.Sprintf("the Cluster %s is protected, and this is not: when it leaves Git, Flux deletes it with its machines or infrastructure",
				cluster.Name),
			"annotate it with "+pruneAnnotation+": disabled"))
	}
	return out
}

// namesOfKinds is text such as "AWSCluster, MachineDeployment".
func namesOfKinds(all []*object) string {
	var kinds []string
	for _, o := range all {
		kinds = append(kinds, o.Kind)
	}
	slices.Sort(kinds)
	return strings.Join(slices.Compact(kinds), ", ")
}

// ownerOn is a Flux object with the cluster on which it applies objects.
type ownerOn struct {
	place place
	owner render.Owner
}

// unpruned returns the Flux Kustomizations that delete neither an object that was removed from Git, nor all objects when they are removed
// themselves.
func (r *run) unpruned() map[ownerOn]bool {
	out := map[ownerOn]bool{}
	for _, o := range r.rendered.Objects {
		if !o.IsKustomization() {
			continue
		}
		var says struct {
			Spec struct {
				Prune          *bool  `json:"prune"`
				DeletionPolicy string `json:"deletionPolicy"`
			} `json:"spec"`
		}
		if kjson.Unmarshal(o.JSON, &says) != nil || says.Spec.Prune == nil || *says.Spec.Prune {
			continue
		}
		if policy := says.Spec.DeletionPolicy; policy != "Delete" && policy != "WaitForTermination" {
			for _, p := range (&object{Object: o}).places() {
				out[ownerOn{p, render.Owner{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}}] = true
			}
		}
	}
	return out
}

// manifestHomes returns the namespaces of clusters that are in no folder of the layout, each with the name of one such cluster.
func (r *run) manifestHomes() map[known]string {
	homes := map[known]string{}
	for _, o := range r.rendered.Objects {
		if render.IsManifestCluster(o) && (&object{Object: o}).isProtected() { // otherwise the finding is about the Cluster
			homes[known{place: (&object{Object: o}).places()[0], name: o.Namespace}] = o.Cluster
		}
	}
	return homes
}

// patchedAway reports a protection that the repo has and that a patch takes away. If the repo has no protection either, that is a finding
// of its own. A patch that removes all annotations also removes those that tell where an object comes from.
func (c *cluster) patchedAway(o *object) diag.Findings {
	for _, d := range c.file.documents {
		if kindOf(d) != o.Kind || nameOf(d.object) != o.Name {
			continue
		}
		node := yamledit.Find(d.node, "metadata", "annotations", pruneAnnotation)
		if node == nil || node.Value != "disabled" {
			return nil
		}
		at := locate(d.node, "metadata.annotations."+pruneAnnotation)
		return diag.Findings{finding(RulePrune, c.file.path, at.Line, at.Column,
			fmt.Sprintf("a patch takes the prune protection of the %s of cluster %s away: Flux deletes it when it leaves Git", o.Kind, c.name),
			"let the patch keep "+pruneAnnotation+": disabled")}
	}
	return nil
}

// isProtected tells whether an object stays when it is removed from Git, or when the release that made it is uninstalled.
func (o *object) isProtected() bool {
	_, text, _ := o.Metadata()
	var metadata struct {
		Annotations map[string]string `json:"annotations"`
		Labels      map[string]string `json:"labels"`
	}
	if text == nil || kjson.Unmarshal(text, &metadata) != nil {
		return true // its schema says what is wrong
	}
	if o.Template != "" {
		return strings.EqualFold(strings.TrimSpace(metadata.Annotations[keepAnnotation]), "keep")
	}
	// As in kustomize-controller, labels count as well, and an object that is not reconciled is not pruned.
	for _, marks := range []map[string]string{metadata.Annotations, metadata.Labels} {
		if strings.EqualFold(marks[pruneAnnotation], "disabled") || strings.EqualFold(marks[reconcileAnnotation], "disabled") {
			return true
		}
	}
	return false
}

// unprotectedCluster is the finding at the declaration of a Cluster. For a template of a chart there is one finding for all Clusters that
// it makes.
func (r *run) unprotectedCluster(o *object, open []*object) diag.Finding {
	if o.Template == "" {
		also := ""
		if len(open) > 0 {
			also = ", and its other objects that machines or infrastructure go with: " + namesOfKinds(open)
		}
		return o.at("metadata.annotations."+pruneAnnotation, RulePrune, "the Cluster has no prune protection: Flux deletes it when it leaves Git",
			"annotate it with "+pruneAnnotation+": disabled"+also)
	}
	line := 1
	if f := r.tree.byPath[o.Template]; f != nil {
		if at := bytes.Index(f.content, []byte("kind: Cluster\n")); at >= 0 {
			line += bytes.Count(f.content[:at], []byte("\n"))
		}
	}
	return finding(RulePrune, o.Template, line, 0,
		fmt.Sprintf("the chart makes a Cluster that goes with its release, as that of %s: Helm deletes it when the release is uninstalled",
			o.Name),
		"annotate it with "+keepAnnotation+": keep; `fleetctl cluster remove` takes that off")
}
