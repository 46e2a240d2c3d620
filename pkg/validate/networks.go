package validate

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// The uses of a cluster's networks.
const (
	ofPods     = "pods"
	ofServices = "Services"
	ofNodes    = "nodes"
	ofEither   = "nodes or pods"
	ofPlane    = "the control plane"
	ofEndpoint = "the API server"
	ofDNS      = "the DNS service"
)

// network is a range of addresses, or a single address, that an object sets for one use in a cluster.
type network struct {
	of, text, field string
	prefix          netip.Prefix
}

// netPath is a field with networks. In the path, [] follows a list of objects.
type netPath struct{ of, path string }

// netPaths are the fields with networks, by kind: Cluster, and the kinds that a Cluster refers to.
var netPaths = map[string][]netPath{
	"Cluster": {
		{ofPods, "spec.clusterNetwork.pods.cidrBlocks"}, {ofServices, "spec.clusterNetwork.services.cidrBlocks"}, endpoint,
	},
	"AWSCluster":             awsPaths,
	"AWSManagedControlPlane": append([]netPath{{ofEither, "spec.secondaryCidrBlock"}}, awsPaths...),
	"AzureCluster":           {{ofNodes, "spec.networkSpec.vnet.cidrBlocks"}, {ofNodes, "spec.networkSpec.subnets[].cidrBlocks"}},
	"AzureManagedControlPlane": {
		{ofNodes, "spec.virtualNetwork.cidrBlock"}, {ofNodes, "spec.virtualNetwork.subnet.cidrBlock"}, {ofDNS, "spec.dnsServiceIP"},
	},
	"AzureASOManagedControlPlane": {
		{ofPods, "spec.resources[].spec.networkProfile.podCidr"},
		{ofServices, "spec.resources[].spec.networkProfile.serviceCidr"},
		{ofDNS, "spec.resources[].spec.networkProfile.dnsServiceIP"},
	},
	"GCPCluster":        {{ofNodes, "spec.network.subnets[].cidrBlock"}},
	"GCPManagedCluster": {{ofNodes, "spec.network.subnets[].cidrBlock"}},
	"GCPManagedControlPlane": {
		{ofPods, "spec.clusterNetwork.pod.cidrBlock"},
		{ofServices, "spec.clusterNetwork.service.cidrBlock"},
		{ofPlane, "spec.clusterNetwork.privateCluster.controlPlaneCidrBlock"},
	},
	"Metal3Cluster":    {endpoint},
	"OpenStackCluster": {{ofNodes, "spec.managedSubnets[].cidr"}, endpoint},
	"ProxmoxCluster":   {endpoint},
	"VSphereCluster":   {endpoint},
}

// awsPaths are the ranges of a VPC. A second range may be for pods, if they get addresses of the VPC.
var awsPaths = []netPath{
	{ofNodes, "spec.network.vpc.cidrBlock"},
	{ofNodes, "spec.network.subnets[].cidrBlock"},
	{ofEither, "spec.network.vpc.secondaryCidrBlocks[].ipv4CidrBlock"},
	{ofEither, "spec.network.vpc.ipv6.cidrBlock"},
	{ofEither, "spec.network.subnets[].ipv6CidrBlock"},
}

// endpoint is the field with the address of the API server, if the address is known before the cluster exists.
var endpoint = netPath{ofEndpoint, "spec.controlPlaneEndpoint.host"}

// networksOf reads the networks of a cluster from an object of Cluster API. The findings are about fields that are no networks.
func networksOf(o *object, content map[string]any) ([]network, diag.Findings) {
	group := groupOf(o)
	if !strings.HasSuffix(group, clusterGroup) {
		return nil, nil
	}
	r := &networkReader{object: o}
	for _, p := range netPaths[o.Kind] {
		r.path(content, p.of, "", p.path)
	}
	if o.Kind == "AzureCluster" {
		r.found = inSubnets(r.found)
	}
	return r.found, r.wrong
}

// inSubnets leaves out the network around the subnets: machines in Azure are in the subnets alone, and the ranges of pods may be next to
// them in the same network, as in the templates of its provider for IPv6.
func inSubnets(found []network) []network {
	const subnets = "spec.networkSpec.subnets["
	if !slices.ContainsFunc(found, func(n network) bool { return strings.HasPrefix(n.field, subnets) }) {
		return found
	}
	return slices.DeleteFunc(found, func(n network) bool { return !strings.HasPrefix(n.field, subnets) })
}

// networkReader collects the networks of one object.
type networkReader struct {
	object *object
	found  []network
	wrong  diag.Findings
}

// path reads the networks at path below f. at is the path of f in the object.
func (r *networkReader) path(f mapping.Fields, of, at, path string) {
	before, after, list := strings.Cut(path, "[].")
	if list {
		for i, item := range f.List(strings.Split(before, ".")...) {
			r.path(item, of, fmt.Sprintf("%s%s[%d].", at, before, i), after)
		}
		return
	}
	steps := strings.Split(path, ".")
	switch value := f.In(steps[:len(steps)-1]...)[steps[len(steps)-1]].(type) {
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
	if of == ofEndpoint || of == ofDNS {
		r.address(of, text, field)
		return
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		r.wrong = append(r.wrong, r.object.at(field, RuleValue, fmt.Sprintf("%.80q is no network", text),
			"write an address and the length of its prefix, as in 10.0.0.0/16"))
		return
	}
	r.found = append(r.found, network{of: of, text: text, field: field, prefix: prefix.Masked()})
}

// address reads a single address. An API server may also have the name of a host, which never ends with a number.
func (r *networkReader) address(of, text, field string) {
	ip, err := netip.ParseAddr(text)
	switch ip = ip.Unmap().WithZone(""); {
	case err != nil && of == ofEndpoint && strings.ContainsAny(text, ":/"):
		r.wrong = append(r.wrong, r.object.at(field, RuleValue, fmt.Sprintf("%.80q is neither an address nor the name of a host", text),
			"write the address alone: the port is a field of its own"))
	case err != nil && of == ofEndpoint && strings.Trim(text, "0123456789.") == "":
		r.wrong = append(r.wrong, r.object.at(field, RuleValue, fmt.Sprintf("%.80q is no address", text), "write it as 192.0.2.10"))
	case err == nil && !ip.IsUnspecified(): // other texts are names, or addresses that are not known yet
		r.found = append(r.found, network{of: of, text: text, field: field, prefix: netip.PrefixFrom(ip, ip.BitLen())})
	}
}

// placedNetwork is a network with the object that declares it.
type placedNetwork struct {
	network
	object *object
}

// checkNetworks reports overlapping networks of one cluster: of its pods, its Services and its nodes, and the address of its API server.
// The API server accepts such objects, and then some addresses of the cluster do not work.
func checkNetworks(all []*object) diag.Findings {
	own := referable(all, func(o *object) bool { return len(o.networks) > 0 })
	var out diag.Findings
	for _, o := range all {
		if o.Kind == "Cluster" && groupOf(o) == clusterGroup && o.content == nil {
			networks := o.networksWith(own)
			out = append(out, sharing(networks)...)
			out = append(out, misplacedDNS(networks)...)
		}
	}
	return out
}

// networksWith are the networks of a Cluster: first the Cluster's own, then those of its infrastructure and its control plane.
func (o *object) networksWith(own map[known]*object) []placedNetwork {
	parts := []*object{o}
	for _, p := range o.places() {
		for _, ref := range o.refs {
			if ref.role != infraCluster && ref.role != controlPlane {
				continue
			}
			part := own[ref.in(p)]
			if part != nil && !slices.Contains(parts, part) {
				parts = append(parts, part)
			}
		}
	}
	var out []placedNetwork
	for _, part := range parts {
		for _, n := range part.networks {
			out = append(out, placedNetwork{n, part})
		}
	}
	return out
}

// misplacedDNS reports an address of DNS that is not in the network of Services, or that belongs to the first Service, which is the API
// server's.
func misplacedDNS(networks []placedNetwork) diag.Findings {
	var out diag.Findings
	for _, dns := range networks {
		ip, services := dns.prefix.Addr(), ""
		if dns.of != ofDNS {
			continue
		}
		for _, n := range networks {
			if n.of != ofServices || n.prefix.Addr().Is4() != ip.Is4() {
				continue
			}
			services = n.text
			if n.prefix.Contains(ip) && ip.Compare(n.prefix.Addr().Next()) > 0 {
				services = ""
				break
			}
		}
		if services != "" {
			out = append(out, dns.object.at(dns.field, RuleNetworks,
				fmt.Sprintf("%.50s is no address that a Service for DNS can have in %.50s, the network of Services", dns.text, services),
				"write one of this network that is not among its first two, such as the tenth"))
		}
	}
	return out
}

// apart tells whether two networks must not overlap. The address of the API server may be in the network of the nodes, and the address of
// DNS has to be in that of Services.
func (n network) apart(other network) bool {
	of := []string{n.of, other.of}
	if slices.Contains(of, ofDNS) {
		return false
	}
	if slices.Contains(of, ofEither) {
		return slices.Contains(of, ofServices)
	}
	return n.of != other.of && (!slices.Contains(of, ofEndpoint) || slices.Contains(of, ofPods) || slices.Contains(of, ofServices))
}

// sharing reports networks for different uses that overlap. Networks for the same use may overlap, because a subnet is a part of its
// network.
func sharing(networks []placedNetwork) diag.Findings {
	var out diag.Findings
	for i, a := range networks {
		for _, b := range networks[i+1:] {
			if !a.apart(b.network) || !a.prefix.Overlaps(b.prefix) {
				continue
			}
			where := b.field
			if a.object != b.object {
				where = fmt.Sprintf("%s of %s %.80s", b.field, b.object.Kind, b.object.Name)
			}
			out = append(out, a.object.at(a.field, RuleNetworks,
				fmt.Sprintf("%.50s, for %s, has addresses in common with %.50s, for %s (%s)", a.text, a.of, b.text, b.of, where),
				"give each a range of its own; the networks of an existing cluster cannot be changed"))
			break // one finding is enough: a subnet would repeat it
		}
	}
	return out
}
