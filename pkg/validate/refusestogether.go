package validate

import (
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/validate/refused"
)

// checkRefusedTogether reports what a provider refuses of several objects of one cluster only together: of its infrastructure, its control
// plane and its machines.
func checkRefusedTogether(all []*object) diag.Findings {
	c := &clusterParts{contents: map[*object]refused.Object{}, own: referable(all, func(o *object) bool {
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
	return c.findings
}

// clusterParts judges the parts of clusters together.
type clusterParts struct {
	own      map[known]*object
	contents map[*object]refused.Object // each is read once, because a cluster is compared with each of its pools
	findings diag.Findings
}

// cluster judges the infrastructure of a Cluster, and the machines of its control plane.
func (c *clusterParts) cluster(cluster *object, p place) {
	plane := c.own[cluster.referenceAs(controlPlane).in(p)]
	if plane == nil || plane.referenceAs(infraTemplate).name == "" {
		return // such a control plane is no machines of the infrastructure, or nobody knows
	}
	if infra := c.own[cluster.referenceAs(infraCluster).in(p)]; infra != nil {
		refused.JudgeCluster(c.read(infra), c.report(infra))
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
			if whole := c.own[cluster.referenceAs(of).in(p)]; whole != nil {
				refused.JudgeMachines(c.read(made), c.read(whole), c.report(made))
			}
		}
	}
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
