package validate

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// What a network of a cluster is for.
const (
	ofPods     = "pods"
	ofServices = "Services"
	ofNodes    = "nodes"
)

// network is a range of addresses that an object gives to something in a cluster.
type network struct {
	of, text, field string
	prefix          netip.Prefix
}

// netPaths are the fields with networks of nodes, by the kinds that a Cluster refers to. A list of objects is written as []. What CRDs call the network of
// pods or Services beside the Cluster's own is left out: the provider has these in ranges of the same name.
var netPaths = map[string][]string{
	"AWSCluster":             {"spec.network.vpc.cidrBlock", "spec.network.subnets[].cidrBlock"},
	"AWSManagedControlPlane": {"spec.network.vpc.cidrBlock", "spec.network.subnets[].cidrBlock"},
	"AzureCluster":           {"spec.networkSpec.vnet.cidrBlocks", "spec.networkSpec.subnets[].cidrBlocks"},
	"GCPCluster":             {"spec.network.subnets[].cidrBlock"},
	"GCPManagedCluster":      {"spec.network.subnets[].cidrBlock"},
	"OpenStackCluster":       {"spec.managedSubnets[].cidr"},
}

// networksOf reads the networks of a cluster from an object of Cluster API, and what is wrong with them by themselves.
func networksOf(o *object, content map[string]any) ([]network, diag.Findings) {
	group, _, _ := strings.Cut(o.APIVersion, "/")
	if !strings.HasSuffix(group, clusterGroup) {
		return nil, nil
	}
	r := &networkReader{object: o}
	f := fields(content)
	if group == clusterGroup && o.Kind == "Cluster" {
		r.path(f, ofPods, "", "spec.clusterNetwork.pods.cidrBlocks")
		r.path(f, ofServices, "", "spec.clusterNetwork.services.cidrBlocks")
		return r.found, r.wrong
	}
	for _, path := range netPaths[o.Kind] {
		r.path(f, ofNodes, "", path)
	}
	return r.found, r.wrong
}

// networkReader collects the networks of one object.
type networkReader struct {
	object *object
	found  []network
	wrong  diag.Findings
}

// path reads the networks at path below f, which stands at the field at.
func (r *networkReader) path(f fields, of, at, path string) {
	before, after, list := strings.Cut(path, "[].")
	if list {
		for i, item := range f.list(strings.Split(before, ".")...) {
			r.path(item, of, fmt.Sprintf("%s%s[%d].", at, before, i), after)
		}
		return
	}
	steps := strings.Split(path, ".")
	switch value := f.in(steps[:len(steps)-1]...)[steps[len(steps)-1]].(type) {
	case string:
		r.take(of, value, at+path)
	case []any:
		for i, each := range value {
			if text, is := each.(string); is {
				r.take(of, text, fmt.Sprintf("%s%s[%d]", at, path, i))
			}
		}
	}
}

func (r *networkReader) take(of, text, field string) {
	if text == "" || strings.Contains(text, "${") {
		return
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		r.wrong = append(r.wrong, r.object.at(field, RuleValue, fmt.Sprintf("%.80q is no network", text), "write an address and the length of its prefix, as in 10.0.0.0/16"))
		return
	}
	r.found = append(r.found, network{of: of, text: text, field: field, prefix: prefix.Masked()})
}

// checkNetworks reports networks of one cluster that have addresses in common: those of its pods, of its Services and of its nodes. Nothing refuses them when
// they are applied; nodes and pods then answer for each other, or for nobody.
func checkNetworks(all []*object) diag.Findings {
	own := map[known]*object{} // by what they are, where they have networks
	for _, o := range all {
		if len(o.networks) == 0 || o.content != nil {
			continue
		}
		group, _, _ := strings.Cut(o.APIVersion, "/")
		for _, p := range o.places() {
			own[known{place: p, group: group, kind: o.Kind, namespace: o.Namespace, name: o.Name}] = o
		}
	}
	var out diag.Findings
	for _, o := range all {
		if o.Kind != "Cluster" || o.content != nil || len(o.networks) == 0 {
			continue
		}
		out = append(out, o.sharing(o)...)
		seen := map[*object]bool{}
		for _, p := range o.places() {
			for _, ref := range o.refs {
				if ref.role != infraCluster && ref.role != controlPlane {
					continue
				}
				other := own[known{place: p, group: ref.group, kind: ref.kind, namespace: ref.namespace, name: ref.name}]
				if other != nil && !seen[other] {
					seen[other] = true
					out = append(out, o.sharing(other)...)
				}
			}
		}
	}
	return out
}

// sharing finds the networks of a Cluster that have addresses in common with those of other, which may be the Cluster itself: networks for the same are
// parts of each other, or there are two for the two families of addresses.
func (o *object) sharing(other *object) diag.Findings {
	var out diag.Findings
	for i, a := range o.networks {
		for j, b := range other.networks {
			if a.of == b.of || !a.prefix.Overlaps(b.prefix) || o == other && j < i {
				continue
			}
			where := b.field
			if o != other {
				where = fmt.Sprintf("%s of %s %.80s", b.field, other.Kind, other.Name)
			}
			out = append(out, o.at(a.field, RuleNetworks, fmt.Sprintf("%.50s, for %s, has addresses in common with %.50s, for %s (%s)", a.text, a.of, b.text, b.of, where),
				"give each a range of its own; the networks of a cluster cannot be changed once it is there"))
			break // one of them is enough: subnets are parts of their network
		}
	}
	return out
}
