package refused

import (
	"fmt"
	"slices"
	"strings"
)

// service reports what the API server refuses in a Service: two ports with one name or one number, and settings that its type does not
// have.
func service(p part) {
	spec := p.in("spec")
	kind, known := spec.known("type")
	if !known && spec.given("type") {
		return // Flux fills it in
	}
	spec.servicePorts(kind)
	if kind == "ExternalName" && !spec.has("externalName") {
		spec.refuse("", "a Service of the type ExternalName needs an externalName", "write the name of the host that it stands for")
	}
	if spec.word("clusterIP") == "None" && (kind == "LoadBalancer" || kind == "NodePort") {
		spec.refuse("clusterIP", "a Service of the type "+kind+" cannot be headless", "take clusterIP away, or the type")
	}
	if kind != "LoadBalancer" && spec.has("loadBalancerSourceRanges") {
		spec.refuse("loadBalancerSourceRanges", "only a Service of the type LoadBalancer has it", "take it away, or write type: LoadBalancer")
	}
	outside := kind == "LoadBalancer" || kind == "NodePort" || spec.has("externalIPs")
	if !outside && spec.has("externalTrafficPolicy") {
		spec.refuse("externalTrafficPolicy", "only a Service that is reached from outside of the cluster has it",
			"take it away, or write another type")
	}
}

// servicePorts judges the ports of a Service of a kind.
func (p part) servicePorts(kind string) {
	var names, numbers []string
	ports := p.each("ports")
	for _, port := range ports {
		if name, ok := port.known("name"); ok {
			if slices.Contains(names, name) {
				port.refuse("name", fmt.Sprintf("there is a port %s already", name), "give each port a name of its own")
			}
			names = append(names, name)
		} else if len(ports) > 1 && !port.given("name") {
			port.refuse("", "a Service with several ports needs a name for each", "give each port a name of its own")
		}
		if number, ok := port.number("port"); ok {
			protocol := port.word("protocol")
			if protocol == "" {
				protocol = "TCP"
			}
			text := fmt.Sprintf("%v/%s", number, protocol)
			if slices.Contains(numbers, text) {
				port.refuse("port", fmt.Sprintf("there is a port %s already", text), "take one of the two away")
			}
			numbers = append(numbers, text)
		}
		if (kind == "" || kind == "ClusterIP") && port.has("nodePort") {
			port.refuse("nodePort", "a Service of the type ClusterIP has no ports on nodes", "take it away, or write type: NodePort")
		}
	}
}

// ingressPath judges a path of an Ingress.
func ingressPath(p part) {
	if path, ok := p.known("path"); ok {
		switch {
		case !strings.HasPrefix(path, "/"):
			p.refuse("path", fmt.Sprintf("%.80q does not begin with /", path), "write it from the top, as in /shop")
		case p.word("pathType") != "ImplementationSpecific" && strings.Contains(path, "//"):
			p.refuse("path", fmt.Sprintf("%.80q has a double /", path), "take one of the two away")
		}
	} else if !p.given("path") && (p.word("pathType") == "Prefix" || p.word("pathType") == "Exact") {
		p.refuse("", "a path of the type "+p.word("pathType")+" needs a path", "write path: /")
	}
	p.in("backend").in("service").in("port").together("name", "number")
}

// policyPort judges a port of a NetworkPolicy.
func policyPort(p part) {
	p.portNumber("port")
	p.portNumber("endPort")
	last, ok := p.number("endPort")
	if !ok {
		return
	}
	switch first, isNumber := p.number("port"); {
	case !isNumber && !strings.Contains(p.word("port"), "${"):
		p.refuse("endPort", "it needs a port with a number", "write the first port of the range under port")
	case isNumber && last < first:
		p.refuse("endPort", fmt.Sprintf("%v is less than port, which is %v", last, first), "let it be at least port")
	}
}

// policyPeer judges a peer of a NetworkPolicy.
func policyPeer(p part) {
	if p.given("ipBlock") {
		p.together("podSelector", "ipBlock")
		p.together("namespaceSelector", "ipBlock")
	}
	ipBlock(p.in("ipBlock"))
}
