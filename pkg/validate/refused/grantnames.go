package refused

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// meantVerbs are the verbs to use in place of words that are no verbs of Kubernetes.
var meantVerbs = map[string]string{
	"read": "get, list and watch", "write": "create, update and patch", "edit": "update and patch", "modify": "update and patch",
	"remove": "delete", "add": "create", "all": `"*"`, "view": "get, list and watch",
}

// parts are the subresources of Kubernetes' own kinds, and what roles name as such: the finalizers of owners, and the paths of the kubelet.
var parts = []string{
	"approval", "attach", "binding", "checkpoint", "configz", "ephemeralcontainers", "eviction", "exec", "finalize", "finalizers", "healthz",
	"log", "metrics", "pods", "portforward", "proxy", "resize", "scale", "spec", "stats", "status", "statusz", "token",
}

// misnamed reports groups and resources that no API server has: a group of one word that is not Kubernetes' own, which a CRD cannot have;
// a kind in the singular; and a misspelt part of a resource. A rule may have names of several versions of Kubernetes, and a chart all that
// it ever needed; so it reports nothing of charts, and a group or a kind only if the rule has no right one.
func (p part) misnamed(groups, resources []string) bool {
	if p.object.Template != "" {
		return false
	}
	own := func(group string) bool { return strings.Contains(group, ".") || group == "*" || ofKubernetes(group) }
	if len(groups) > 0 && !slices.ContainsFunc(groups, own) {
		hint := "write the whole name of the group, as in networking.k8s.io"
		if nearest := diag.Nearest(groups[0], ownGroups); nearest != "" {
			hint = "did you mean " + nearest + "?"
		}
		p.refuse("apiGroups[0]", fmt.Sprintf("%.60q is no API group", groups[0]), hint)
		return true
	}
	if slices.Contains(groups, "*") || slices.ContainsFunc(groups, func(group string) bool { return !ofKubernetes(group) }) {
		return false
	}
	if len(resources) > 0 && !slices.ContainsFunc(resources, func(name string) bool { return !isSingular(name) }) {
		name, _, _ := strings.Cut(resources[0], "/")
		p.refuse("resources[0]", fmt.Sprintf("%.60q is no resource, so the rule grants nothing for it", resources[0]),
			"write the plural, "+plural(name))
		return true
	}
	for i, resource := range resources {
		name, sub, _ := strings.Cut(resource, "/")
		if nearest := diag.OneLetterOff(sub, parts); nearest != "" && !slices.Contains(parts, sub) && groupsOf[name] != nil {
			p.refuse(fmt.Sprintf("resources[%d]", i), fmt.Sprintf("%.60s have no %.40q", name, sub), "did you mean "+name+"/"+nearest+"?")
			return true
		}
	}
	return false
}

// namesKinds reports a rule whose resources are all kinds, such as Deployment. Like misnamed, it reports nothing of charts, and nothing of
// a rule that has a right name beside the wrong one.
func (p part) namesKinds(resources []string) bool {
	isKind := func(resource string) bool {
		name, _, _ := strings.Cut(resource, "/")
		return strings.ToLower(name) != name
	}
	first := slices.IndexFunc(resources, isKind)
	if first < 0 || p.object.Template != "" ||
		slices.ContainsFunc(resources, func(resource string) bool { return !isKind(resource) && !isSingular(resource) }) {
		return false
	}
	name, _, _ := strings.Cut(resources[first], "/")
	hint := "write the plural in lower case, as in deployments"
	if plural := plural(name); groupsOf[plural] != nil {
		hint = "write " + plural
	}
	p.refuse(fmt.Sprintf("resources[%d]", first), fmt.Sprintf("%.80q is a kind, and no resource", resources[first]), hint)
	return true
}

// isSingular tells whether a resource of Kubernetes' own is named in the singular, in lower case.
func isSingular(resource string) bool {
	name, _, _ := strings.Cut(resource, "/")
	return name == strings.ToLower(name) && groupsOf[name] == nil && groupsOf[plural(name)] != nil
}
