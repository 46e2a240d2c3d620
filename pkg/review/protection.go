package review

import (
	"encoding/json"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/render"
)

const (
	kustomizeGroup = "kustomize.toolkit.fluxcd.io"
	// removeAnnotation is the annotation with which the first step of `fleetctl cluster remove` marks a HelmRelease.
	removeAnnotation    = "fleetctl.dev/remove"
	pruneAnnotation     = kustomizeGroup + "/prune"
	reconcileAnnotation = kustomizeGroup + "/reconcile"
	keepAnnotation      = "helm.sh/resource-policy"
)

// side finds the objects that decide what becomes of clusters, among all objects of one side.
type side struct {
	all      []*render.Object
	clusters []*render.Object
	byID     map[string]*render.Object
	// parts are the objects of clusters that machines or infrastructure go with, except those that a chart makes.
	parts map[body][]*render.Object
}

// body is what the objects of one cluster have in common.
type body struct {
	managementCluster string
	cluster           clusterID
}

func bodyOf(o *render.Object) body { return body{o.ManagementCluster, clusterIn(o)} }

func sideOf(all []*render.Object) *side {
	s := &side{all: all, byID: map[string]*render.Object{}, parts: map[body][]*render.Object{}}
	for _, o := range all {
		cluster := isCluster(o)
		part := o.Cluster != "" && len(o.Targets) == 0 && o.Owner.Kind != render.KindHelmRelease && render.HoldsMachines(o)
		if part {
			s.parts[bodyOf(o)] = append(s.parts[bodyOf(o)], o)
		}
		if !cluster && !part && o.Kind != "Namespace" && o.Kind != render.KindHelmRelease && o.Kind != render.KindKustomization {
			continue
		}
		for _, target := range targetsOf(o) {
			s.byID[id(o, target)] = o
		}
		if cluster {
			s.clusters = append(s.clusters, o)
		}
	}
	return s
}

func isCluster(o *render.Object) bool {
	return o.Kind == "Cluster" && strings.HasPrefix(o.APIVersion, capiGroup+"/")
}

// same returns this side's version of an object of the other side; nil if there is none.
func (s *side) same(o *render.Object) *render.Object {
	if o == nil {
		return nil
	}
	return s.byID[id(o, targetsOf(o)[0])]
}

// beside finds an object on the same cluster as another one, or on the management cluster whose Flux applies objects to
// that cluster remotely.
func (s *side) beside(o *render.Object, apiVersion, kind, namespace, name string) *render.Object {
	wanted := &render.Object{ManagementCluster: o.ManagementCluster, APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
	if there := s.byID[id(wanted, targetsOf(o)[0])]; there != nil {
		return there
	}
	return s.byID[id(wanted, "")]
}

// open tells whether an object is deleted when its file leaves Git (if a Kustomization applies it), or when its release
// is uninstalled or no longer makes it (if Helm does). now is the newer side, which tells what else leaves Git with it; nil stands for
// anything that may.
func (s *side) open(o *render.Object, now *side) bool {
	if o == nil {
		return false
	}
	if o.Owner.Kind == render.KindHelmRelease {
		return !strings.EqualFold(strings.TrimSpace(annotationsOf(o)[keepAnnotation]), "keep")
	}
	// As in kustomize-controller: labels count, too, and an object that it does not reconcile is not pruned.
	if marked(o, pruneAnnotation, "disabled") || marked(o, reconcileAnnotation, "disabled") {
		return false
	}
	owner := s.beside(o, kustomizeGroup+"/v1", render.KindKustomization, o.Owner.Namespace, o.Owner.Name)
	if owner == nil || fieldsOf(owner)["prune"] != false {
		return true
	}
	// Without pruning, Flux deletes objects only with their Kustomization, and only if its deletionPolicy says so.
	policy := fieldsOf(owner)["deletionPolicy"]
	return (policy == "Delete" || policy == "WaitForTermination") && (now == nil || now.same(owner) == nil)
}

// marked tells whether a label or an annotation has a value.
func marked(o *render.Object, key, value string) bool {
	var fields struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
			Labels      map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	if json.Unmarshal(o.JSON, &fields) != nil {
		return false
	}
	return strings.EqualFold(fields.Metadata.Annotations[key], value) || strings.EqualFold(fields.Metadata.Labels[key], value)
}

// guard is the protection of a cluster against deletion when its files leave Git. The Namespace and the HelmRelease are
// nil if the repo does not declare them.
type guard struct {
	cluster, namespace, release *render.Object
	// These objects are deleted when they leave Git, or when the release is uninstalled.
	clusterOpen, namespaceOpen, releaseOpen bool
	// parts are its objects outside of a chart that are deleted when they leave Git, and machines or infrastructure with them.
	parts []*render.Object
	// requested says that the first step of `fleetctl cluster remove` was made.
	requested bool
}

// guardOf returns the protection of a cluster. now is as in open.
func (s *side) guardOf(cluster *render.Object, now *side) *guard {
	g := &guard{cluster: cluster, namespace: s.beside(cluster, "v1", "Namespace", "", cluster.Namespace)}
	if cluster.Owner.Kind == render.KindHelmRelease {
		g.release = s.beside(cluster, helmGroup+"/v2", render.KindHelmRelease, cluster.Owner.Namespace, cluster.Owner.Name)
	}
	g.clusterOpen, g.namespaceOpen, g.releaseOpen = s.open(cluster, now), s.open(g.namespace, now), s.open(g.release, now)
	g.requested = annotationsOf(g.release)[removeAnnotation] != ""
	for _, part := range s.parts[bodyOf(cluster)] {
		if s.open(part, now) {
			g.parts = append(g.parts, part)
		}
	}
	return g
}

// partsGone counts the parts of a cluster that Flux deletes because the newer side has them no more.
func (g *guard) partsGone(now *side) string {
	kinds := map[string]int{}
	for _, part := range g.parts {
		if now.same(part) == nil {
			kinds[part.Kind]++
		}
	}
	return plain.PerKind(kinds)
}

// namespaceGoes tells whether Flux deletes the Namespace of a cluster, and with it the cluster.
func (g *guard) namespaceGoes(now *side) bool { return g.namespaceOpen && now.same(g.namespace) == nil }

// The texts about what becomes of a cluster that leaves the repo.
const (
	nobodyLooks   = ", and nothing looks after it"
	runsOn        = "so it goes on to run" + nobodyLooks
	namespaceOpen = "its Namespace is not protected, so Flux deletes it with all that is in it"
)

// removal says what becomes of a cluster with this guard that the newer side does not have.
func (s *side) removal(g *guard, now *side) Impact {
	i := Impact{Kind: ImpactDeleteCluster, File: g.cluster.Source.File}
	uninstalled := g.release != nil && now.same(g.release) == nil
	paused := g.release != nil && fieldsOf(g.release)["suspend"] == true
	i.Requested = g.requested && uninstalled && !paused && g.releaseOpen && g.clusterOpen
	switch {
	case g.namespaceGoes(now):
		i.Reason = namespaceOpen
	case i.Requested:
	case uninstalled && !g.releaseOpen:
		i.Runs, i.Reason = true, "it is protected, "+runsOn
	case uninstalled && paused:
		i.Runs, i.Reason = true, "its HelmRelease is paused, which Flux only forgets, "+runsOn
	case uninstalled && g.clusterOpen:
		i.Reason = "its HelmRelease is not protected and its Cluster not kept, so Flux uninstalls it"
	case uninstalled:
		i.Reason = "its HelmRelease is not protected, so Flux uninstalls it"
		if lost := s.notKept(g.cluster); lost != "" {
			i.partly = true
			i.Reason += " and deletes what its chart does not keep (" + lost + ")"
		} else {
			i.Runs = true
			i.Reason += "; all that its chart makes is kept, " + runsOn
		}
	case !g.clusterOpen:
		i.Runs, i.Reason = true, "it is protected, "+runsOn
	case g.release != nil:
		i.Reason = "its HelmRelease does not make it any more, and it is not kept"
	default:
		i.Reason = "it is not protected, so Flux deletes it"
	}
	if gone := g.partsGone(now); i.Runs && gone != "" {
		i.Runs, i.partly, i.Reason = false, true, "its Cluster stays, and Flux deletes what is not protected ("+gone+")"
	}
	return i
}

// suspends returns what has to be resumed before the removal happens.
func (g *guard) suspends(now *side) bool {
	switch {
	case g.namespaceGoes(now):
		return g.namespace.Suspended
	case g.release != nil && now.same(g.release) == nil:
		return g.release.Suspended
	}
	return g.cluster.Suspended
}

// notKept counts the objects that are deleted when the release of a cluster is uninstalled.
func (s *side) notKept(cluster *render.Object) string {
	kinds := map[string]int{}
	for _, o := range s.all {
		if o.Owner == cluster.Owner && o.ManagementCluster == cluster.ManagementCluster && s.open(o, nil) {
			kinds[o.Kind]++
		}
	}
	return plain.PerKind(kinds)
}

// staying compares the protection of clusters that both sides have.
func (j *judge) staying(before, after *side) {
	for _, cluster := range after.clusters {
		old := before.same(cluster)
		if old == nil {
			continue
		}
		if was := before.guardOf(old, after); was.namespaceGoes(after) {
			j.whole[clusterIn(cluster)] = true
			j.addTo(cluster, Impact{
				Kind: ImpactDeleteCluster, Reason: namespaceOpen, Machines: machinesIn(before.all, clusterIn(old)), File: old.Source.File,
			}, was.namespace.Suspended)
			continue
		}
		j.opened(before.guardOf(old, nil), after.guardOf(cluster, nil), before, after)
	}
}

// newlyOpen counts the parts of a cluster that were protected on the older side. It passes over pools: to take a pool's protection away
// is the first step of its removal, and does not endanger the cluster.
func (g *guard) newlyOpen(before *side) string {
	kinds := map[string]int{}
	for _, part := range g.parts {
		if old := before.same(part); old != nil && !before.open(old, nil) && !strings.HasPrefix(part.Kind, "Machine") &&
			!strings.HasSuffix(part.Kind, "MachinePool") {
			kinds[part.Kind]++
		}
	}
	return plain.PerKind(kinds)
}

// opened compares the protection of a cluster on both sides. The first step of `fleetctl cluster remove` removes the
// protection, except that of the Namespace, and the report announces this.
func (j *judge) opened(was, now *guard, before, after *side) {
	if now.requested && !was.requested {
		j.unprotected[clusterIn(now.cluster)] = true
		j.addTo(now.cluster, Impact{Kind: ImpactUnprotect, Requested: true}, now.cluster.Suspended)
	}
	var reasons []string
	suspended := now.cluster.Suspended
	if now.releaseOpen && !was.releaseOpen && !now.requested {
		reasons, suspended = append(reasons, "its HelmRelease is no longer protected"), now.release.Suspended
	}
	if now.clusterOpen && !was.clusterOpen && !now.requested {
		word := "its Cluster is no longer kept"
		if now.cluster.Owner.Kind != render.KindHelmRelease {
			word = "its Cluster is no longer protected"
		}
		reasons = append(reasons, word)
	}
	if now.namespaceOpen && !was.namespaceOpen {
		reasons, suspended = append([]string{"its Namespace is no longer protected"}, reasons...), now.namespace.Suspended
	}
	danger := now.danger(after)
	if parts := now.newlyOpen(before); parts != "" {
		if len(reasons) == 0 {
			danger = folder + "them"
		}
		reasons = append(reasons, "parts of it are no longer protected ("+parts+")")
	}
	if len(reasons) == 0 {
		return
	}
	j.unprotected[clusterIn(now.cluster)] = true
	j.addTo(now.cluster, Impact{Kind: ImpactUnprotect, Reason: strings.Join(reasons, ", ") + "; " + danger}, suspended)
}

const folder = "deleting its folder would then delete "

// danger says what would delete a cluster with this guard.
func (g *guard) danger(s *side) string {
	switch {
	case g.namespaceOpen, g.clusterOpen && g.releaseOpen, g.clusterOpen && g.cluster.Owner.Kind != render.KindHelmRelease:
		return folder + "it"
	case g.releaseOpen:
		if lost := s.notKept(g.cluster); lost != "" {
			return folder + "what its chart does not keep (" + lost + ")"
		}
		return "deleting its folder would then uninstall it"
	}
	return "uninstalling its HelmRelease would then delete it"
}

func clusterIn(o *render.Object) clusterID { return clusterID{o.Environment, o.Cluster} }
