package clustertemplate

import (
	"regexp"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// clusterGroup is the API group of clusters.
const clusterGroup = "cluster.x-k8s.io"

// checkCluster makes sure that the template makes one Cluster, called as its release.
func (t *translation) checkCluster(documents []*document) {
	var clusters []*document
	for _, d := range documents {
		if d.kind == "Cluster" && d.group == clusterGroup {
			clusters = append(clusters, d)
		}
	}
	switch len(clusters) {
	case 0:
		t.fault(1, "give the template of a cluster, as `clusterctl generate cluster` takes it", "the template has no Cluster of %s", clusterGroup)
		return
	case 1:
	default:
		t.fault(clusters[1].line, "make a chart of each", "the template has %s: a chart makes one", plain.Count(len(clusters), "Cluster"))
		return
	}
	d := clusters[0]
	line := func(path ...any) int { return d.line + yamledit.Nearest(d.node, path...).Line - 1 }
	if parts := t.partsOf(d.name); len(parts) != 1 || d.name != t.tokenOf(parts[0]) || t.parts[parts[0]].use.node.Param != clusterName {
		t.fault(line("metadata", "name"), "write metadata.name: ${CLUSTER_NAME}",
			"the Cluster is called %s: a cluster of the fleet gives it its name", t.original(d.name))
	}
}

// choosePool makes a pool of clusterctl's worker nodes, if one object has all of them.
func (t *translation) choosePool(documents []*document) {
	v := t.variable(workerCount)
	if v == nil {
		return
	}
	uses := v.placed()
	if len(uses) != 1 || !uses[0].whole || uses[0].field != "replicas" || uses[0].outer != nil {
		return
	}
	d := documents[uses[0].document-1]
	if d.group != clusterGroup || d.kind != "MachineDeployment" && d.kind != "MachinePool" {
		return
	}
	t.pool = "workers"
	if parts := t.partsOf(d.name); len(parts) == 1 && t.parts[parts[0]].use.node.Param == clusterName {
		if name, ok := strings.CutPrefix(d.name, t.tokenOf(parts[0])+"-"); ok && poolName.MatchString(name) {
			t.pool = name
		}
	}
}

var poolName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
