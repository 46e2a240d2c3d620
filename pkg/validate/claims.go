package validate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// claim is something in a place that one object has for itself alone: a path of a host, or the labels of its pods.
type claim struct {
	place place
	what  string
}

// claimed returns the object that made a claim before, or nil. It remembers the first one.
func (s *resolver) claimed(p place, o *object, what ...string) *object {
	c := claim{p, strings.Join(what, "\x00")}
	first := s.claims[c]
	if first == nil {
		s.claims[c] = o
		return nil
	}
	if first.Kind == o.Kind && first.Namespace == o.Namespace && first.Name == o.Name {
		return nil // it is there twice, which is a finding of its own
	}
	return first
}

// checkClaims reports an object that claims what another one has. It reports nothing of charts, whose values may tell the two apart later,
// and nothing with a variable.
func (s *resolver) checkClaims(p place, o *object) diag.Findings {
	if o.Template != "" || o.Suspended || strings.Contains(string(o.JSON), "${") {
		return nil
	}
	switch group := groupOf(o); {
	case group == "networking.k8s.io" && o.Kind == "Ingress":
		return s.checkHosts(p, o)
	case slices.Contains(counted, group+"/"+o.Kind), group == "apps" && o.Kind == "DaemonSet":
		return s.checkOwnPods(p, o)
	}
	return nil
}

// checkOwnPods reports a controller of pods with the selector of another one in its namespace. Kubernetes does not refuse this, and says
// that such controllers conflict: an autoscaler counts the pods of both, and both may take a pod without an owner. See "Selector" in
// Kubernetes' documentation of Deployments. Two DaemonSets are no finding: no autoscaler counts their pods, and manifests such as flannel's
// have one for each kind of node, with one selector.
func (s *resolver) checkOwnPods(p place, o *object) diag.Findings {
	spec := fieldsOf(o).In("spec")
	selector := spec.In("selector")
	if n, given := spec["replicas"].(int64); len(selector) == 0 || given && n == 0 {
		return nil // one of two that is off does not disturb the other
	}
	text, err := json.Marshal(selector) // with sorted fields
	if err != nil {
		return nil //nolint:nilerr // what was read from YAML can be written
	}
	first := s.claimed(p, o, "pods", o.Namespace, string(text))
	if first == nil || first.Kind == "DaemonSet" && o.Kind == "DaemonSet" {
		return nil
	}
	f := o.at("spec.selector", RuleValue,
		fmt.Sprintf("the %s %.80s has the same selector, so each may take the pods of the other for its own", first.Kind, first.Name),
		"give each a label of its own, in the selector and in the template; a selector changes only with a new object")
	f.Severity = diag.SeverityWarning
	return diag.Findings{f}
}

// parting are annotations, or the beginnings of annotations, of Ingresses that may share a path: a release for a few, more conditions than
// the path, or a load balancer of its own for each Ingress.
var parting = []string{
	"nginx.ingress.kubernetes.io/canary", "nginx.org/mergeable-ingress-type", "traefik.ingress.kubernetes.io/", "konghq.com/",
	"alb.ingress.kubernetes.io/", "networking.gke.io/", "kubernetes.io/ingress.global-static-ip-name",
	"kubernetes.io/ingress.regional-static-ip-name", "appgw.ingress.kubernetes.io/", "haproxy-ingress.github.io/", "haproxy.org/",
	"higress.io/", "acme.cert-manager.io/", "tailscale.com/", "ingress.cilium.io/",
}

// balances tells whether a class has a usual name of those whose controllers make a load balancer, or a machine of a network, for each
// Ingress. Cilium does so unless it is told otherwise. People add a word to the names of AWS's and Google's: alb-internal.
func balances(class string) bool {
	return class == "tailscale" || class == "cilium" || strings.HasPrefix(class, "alb") || strings.HasPrefix(class, "gce")
}

// checkHosts reports a path of a host that another Ingress of the same class has. The webhook of ingress-nginx refuses the second one
// (checkOverlap in its internal/ingress/controller), and other controllers send the requests to one of the two.
func (s *resolver) checkHosts(p place, o *object) (out diag.Findings) {
	fields := fieldsOf(o)
	annotations := fields.In("metadata", "annotations")
	for name := range annotations {
		if slices.ContainsFunc(parting, func(start string) bool { return strings.HasPrefix(name, start) }) {
			return nil
		}
	}
	class := cmp.Or(fields.Text("spec", "ingressClassName"), annotations.Text("kubernetes.io/ingress.class"))
	if balances(class) {
		return nil
	}
	for i, rule := range fields.List("spec", "rules") {
		host := rule.Text("host")
		if class == "" && host == "" { // nobody knows which controllers take it
			continue
		}
		for j, at := range rule.List("http", "paths") {
			where := cmp.Or(at.Text("path"), "/")
			first := s.claimed(p, o, "host", class, host, where, at.Text("pathType"))
			if first == nil {
				continue
			}
			field := fmt.Sprintf("spec.rules[%d].http.paths[%d]", i, j)
			if at.Text("path") != "" {
				field += ".path"
			}
			f := o.at(field, RuleValue, fmt.Sprintf("the Ingress %.63s/%.80s has this path of %s too, and only one of the two gets the requests",
				first.Namespace, first.Name, hostText(host)), "put both into one Ingress, or give one another host, path or class")
			f.Severity = diag.SeverityWarning
			out = append(out, f)
		}
	}
	return out
}

// hostText is a host of an Ingress for people.
func hostText(host string) string {
	if host == "" {
		return "all hosts"
	}
	return fmt.Sprintf("%.100s", host)
}
