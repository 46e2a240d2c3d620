package refused

import (
	"fmt"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/render"
)

// machineForms judges the lengths of time of a machine.
func (p part) machineForms() {
	for _, field := range machineTimes {
		p.duration(field)
	}
}

// clusterLabel is the label with the name of the Cluster that an object belongs to.
const clusterLabel = "cluster.x-k8s.io/cluster-name"

// JudgeLabels reports a label of workers that names another Cluster than the field of the same object. Cluster API replaces the label, so
// the object is accepted, but is not what its author meant.
func JudgeLabels(o *render.Object, content map[string]any, report func(field, summary, hint string)) {
	group, _, _ := strings.Cut(o.APIVersion, "/")
	if group != "cluster.x-k8s.io" {
		return
	}
	p := part{o, content, "", report}
	spec := p.in("spec")
	cluster, ok := spec.known("clusterName")
	if !ok || isFilledIn(cluster) {
		return
	}
	for _, labels := range []part{
		p.in("metadata").in("labels"), spec.in("selector").in("matchLabels"), spec.in("template").in("metadata").in("labels"),
	} {
		if text, given := labels.known(clusterLabel); given && text != cluster {
			labels.refuse("["+clusterLabel+"]", fmt.Sprintf("%.60q is another cluster than clusterName, which is %.60s", text, cluster),
				"write "+cluster+", or take the label away: Cluster API sets it")
			return
		}
	}
}

// oneOfEachFamily reports a second range of IPv4 or of IPv6. kubeadm takes one of each.
func oneOfEachFamily(p part) {
	seen := map[bool]bool{}
	for field, prefix := range p.ranges("cidrBlocks") {
		if is4 := prefix.Addr().Is4(); seen[is4] {
			p.refuse(field, fmt.Sprintf("%s is a second range of one family, and kubeadm takes one of IPv4 and one of IPv6", prefix),
				"take one of the two away, or give one larger range")
			return
		}
		seen[prefix.Addr().Is4()] = true
	}
}
