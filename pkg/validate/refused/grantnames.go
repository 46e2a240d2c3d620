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

// parts are the subresources of Kubernetes' own kinds.
var parts = []string{
	"approval", "attach", "binding", "ephemeralcontainers", "eviction", "exec", "finalize", "log", "portforward", "proxy", "resize", "scale",
	"status", "token",
}

// misnamed reports groups and resources that no API server has: a group of one word that is not Kubernetes' own, which a CRD cannot have;
// a kind in the singular; and a misspelt part of a resource.
func (p part) misnamed(groups, resources []string) bool {
	for i, group := range groups {
		if !strings.Contains(group, ".") && group != "*" && !ofKubernetes(group) {
			hint := "write the whole name of the group, as in networking.k8s.io"
			if nearest := diag.Nearest(group, ownGroups); nearest != "" {
				hint = "did you mean " + nearest + "?"
			}
			p.refuse(fmt.Sprintf("apiGroups[%d]", i), fmt.Sprintf("%.60q is no API group", group), hint)
			return true
		}
	}
	if slices.Contains(groups, "*") || slices.ContainsFunc(groups, func(group string) bool { return !ofKubernetes(group) }) {
		return false
	}
	for i, resource := range resources {
		name, sub, divided := strings.Cut(resource, "/")
		field := fmt.Sprintf("resources[%d]", i)
		switch nearest := diag.Nearest(sub, parts); {
		case name == strings.ToLower(name) && groupsOf[name] == nil && groupsOf[plural(name)] != nil:
			p.refuse(field, fmt.Sprintf("%.60q is no resource, so the rule grants nothing for it", name), "write the plural, "+plural(name))
			return true
		case divided && nearest != "" && !slices.Contains(parts, sub) && groupsOf[name] != nil:
			p.refuse(field, fmt.Sprintf("%.60s have no %.40q", name, sub), "did you mean "+name+"/"+nearest+"?")
			return true
		}
	}
	return false
}
