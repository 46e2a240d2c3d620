package validate

import (
	"fmt"
	"slices"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/validate/refused"
)

// checkRefusedTogether reports what a provider refuses of several objects of one cluster only together: of its infrastructure, its control
// plane and its machines.
func checkRefusedTogether(r *run, all []*object) diag.Findings {
	c := &clusterParts{contents: map[*object]refused.Object{}, pools: map[*object][]*object{}, own: referable(all, func(o *object) bool {
		return o.Kind == "Cluster" || strings.HasSuffix(o.Kind, "ControlPlane") || refused.IsJudgedTogether(o.Object)
	})}
	for _, o := range all {
		if o.content != nil || groupOf(o) != clusterGroup {
			continue
		}
		for _, p := range o.places() {
			if o.Kind == "Cluster" {
				c.cluster(o, p)
			} else if cluster := c.own[o.referenceTo("Cluster").in(p)]; cluster != nil {
				c.machines(o, cluster, p)
			}
		}
	}
	whole := r.hasAllObjects()
	c.allPools(func(plane *object) bool {
		return whole && !slices.ContainsFunc(plane.places(), func(p place) bool { return r.lacksIn(p, plane.Namespace) })
	})
	return slices.Concat(c.findings, c.sharedSecrets(all), c.sharedEndpoints(all))
}

// hasAllObjects tells whether charts and folders from outside, or charts that do not render, certainly make no further objects.
func (r *run) hasAllObjects() bool {
	return !slices.ContainsFunc(r.rendered.Findings, func(f diag.Finding) bool { return f.Rule == render.RuleRemote }) &&
		!slices.ContainsFunc(r.rendered.Releases, func(rel *render.Release) bool { return !rel.Rendered || rel.Outside != nil })
}

// clusterParts judges the parts of clusters together.
type clusterParts struct {
	own      map[known]*object
	contents map[*object]refused.Object // each is read once, because a cluster is compared with each of its pools
	findings diag.Findings
	// planes are the control planes of AKS in their order, and pools those of each.
	planes []*object
	pools  map[*object][]*object
}

// cluster judges the infrastructure of a Cluster, and the machines of its control plane.
func (c *clusterParts) cluster(cluster *object, p place) {
	plane := c.own[cluster.referenceAs(controlPlane).in(p)]
	if plane == nil || plane.referenceAs(infraTemplate).name == "" {
		return // such a control plane is no machines of the infrastructure, or nobody knows
	}
	if infra := c.own[cluster.referenceAs(infraCluster).in(p)]; infra != nil {
		refused.JudgeCluster(c.read(infra), c.read(cluster), c.report(infra))
		c.kubeVIP(plane, infra)
	}
	c.machines(plane, cluster, p)
}

// machines judges what the machines of an owner, such as a MachineDeployment, are made from.
func (c *clusterParts) machines(owner, cluster *object, p place) {
	for _, as := range []role{infraTemplate, infraObject} {
		made := c.own[owner.referenceAs(as).in(p)]
		if made == nil {
			continue
		}
		for _, of := range []role{infraCluster, controlPlane} {
			whole := c.own[cluster.referenceAs(of).in(p)]
			if whole == nil {
				continue
			}
			refused.JudgeMachines(c.read(made), c.read(whole), c.report(made))
			if refused.IsJudgedWithOwner(made.Object, whole.Object) {
				refused.JudgeOwned(c.read(owner), c.read(made), c.read(whole), c.report(owner), c.report(made))
			}
			c.pool(made, whole)
		}
	}
}

// pool remembers a pool of AKS, with its control plane.
func (c *clusterParts) pool(made, plane *object) {
	if plane.Kind != "AzureManagedControlPlane" && plane.Kind != "AzureASOManagedControlPlane" || slices.Contains(c.pools[plane], made) ||
		made.Kind != "AzureManagedMachinePool" && made.Kind != "AzureASOManagedMachinePool" {
		return
	}
	if len(c.pools[plane]) == 0 {
		c.planes = append(c.planes, plane)
	}
	c.pools[plane] = append(c.pools[plane], made)
}

// allPools judges the pools of each cluster in AKS together. all tells whether the repo certainly has all pools of a control plane.
func (c *clusterParts) allPools(all func(plane *object) bool) {
	for _, plane := range c.planes {
		var pools []refused.Object
		var reports []refused.Report
		for _, o := range c.pools[plane] {
			pools, reports = append(pools, c.read(o)), append(reports, c.report(o))
		}
		refused.JudgePools(pools, reports, all(plane))
	}
}

// sharedSecrets reports Secrets that two clusters or identities of vSphere name. CAPV makes the first one the owner, and refuses others:
// reconcileIdentitySecret in controllers/vspherecluster_reconciler.go, and controllers/vsphereclusteridentity_controller.go.
func (c *clusterParts) sharedSecrets(all []*object) diag.Findings {
	var out diag.Findings
	owners := map[known]*object{}
	for _, o := range all {
		if o.content != nil || groupOf(o) != "infrastructure."+clusterGroup || o.Kind != "VSphereCluster" && o.Kind != "VSphereClusterIdentity" ||
			c.read(o).IsManagedElsewhere() {
			continue
		}
		for _, p := range o.places() {
			ref := o.referenceTo("Secret")
			secret := ref.in(p)
			owner := owners[secret]
			switch {
			case ref.name == "":
			case owner == nil:
				owners[secret] = o
			case owner != o && (owner.Kind != o.Kind || owner.Name != o.Name || owner.Namespace != o.Namespace):
				out = append(out, o.at(ref.field, RuleRefused,
					fmt.Sprintf("the Secret %.80s is that of %s %.80s, and the provider takes a Secret from one alone", ref.name, owner.Kind, owner.Name),
					"give each a Secret of its own, or let all clusters name one VSphereClusterIdentity"))
			}
		}
	}
	return out
}

// report returns a function that adds a finding about an object.
func (c *clusterParts) report(o *object) func(field, summary, hint string) {
	return func(field, summary, hint string) {
		c.findings = append(c.findings, o.at(field, RuleRefused, summary, hint))
	}
}

// read returns the object with its content.
func (c *clusterParts) read(o *object) refused.Object {
	if _, is := c.contents[o]; !is {
		var content map[string]any
		_ = kjson.Unmarshal(o.JSON, &content) // it was read before
		c.contents[o] = refused.Object{Object: o.Object, Content: content}
	}
	return c.contents[o]
}

// referenceAs returns the first reference of the object to one with a role, or an empty reference.
func (o *object) referenceAs(wanted role) reference {
	for _, ref := range o.refs {
		if ref.role == wanted {
			return ref
		}
	}
	return reference{}
}

// referenceTo returns the first reference of the object to one of a kind, or an empty reference.
func (o *object) referenceTo(kind string) reference {
	for _, ref := range o.refs {
		if ref.kind == kind {
			return ref
		}
	}
	return reference{}
}
