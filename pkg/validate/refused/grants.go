package refused

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// verbs are the verbs of Kubernetes' own kinds.
var verbs = []string{
	"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use", "bind", "escalate", "impersonate", "approve",
	"sign", "attest",
}

// groupsOf are the API groups of the resources that roles name most.
var groupsOf = map[string][]string{
	"pods": {""}, "services": {""}, "configmaps": {""}, "secrets": {""}, "namespaces": {""}, "nodes": {""}, "serviceaccounts": {""},
	"persistentvolumes": {""}, "persistentvolumeclaims": {""}, "endpoints": {""}, "replicationcontrollers": {""}, "resourcequotas": {""},
	"deployments": {"apps", "extensions"}, "daemonsets": {"apps", "extensions"}, "replicasets": {"apps", "extensions"},
	"statefulsets": {"apps"}, "jobs": {"batch"}, "cronjobs": {"batch"}, "horizontalpodautoscalers": {"autoscaling"},
	"ingresses": {"networking.k8s.io", "extensions"}, "networkpolicies": {"networking.k8s.io", "extensions"},
	"ingressclasses": {"networking.k8s.io"}, "poddisruptionbudgets": {"policy"}, "storageclasses": {"storage.k8s.io"},
	"leases": {"coordination.k8s.io"}, "customresourcedefinitions": {"apiextensions.k8s.io"},
	"roles": {rbacGroup}, "rolebindings": {rbacGroup}, "clusterroles": {rbacGroup}, "clusterrolebindings": {rbacGroup},
}

// ownGroups are the API groups that every API server has of its own. Nobody else can have resources in them. Groups such as metrics.k8s.io
// look alike, but an aggregated API server has them, with resources and verbs of its own.
var ownGroups = []string{
	"", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apps", "authentication.k8s.io", "authorization.k8s.io", "autoscaling",
	"batch", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "extensions", "flowcontrol.apiserver.k8s.io",
	"networking.k8s.io", "node.k8s.io", "policy", rbacGroup, "scheduling.k8s.io", "storage.k8s.io",
}

// ofKubernetes tells whether an API group is one of Kubernetes itself.
func ofKubernetes(group string) bool { return slices.Contains(ownGroups, group) }

// grants reports a rule of a role that grants nothing. An API server takes the rule, and refuses later what the rule is for.
func grants(rule part) {
	groups, resources := rule.texts("apiGroups"), rule.texts("resources")
	if strings.Contains(strings.Join(slices.Concat(groups, resources), ""), "$") {
		return // Flux fills it in
	}
	for i, group := range groups {
		if name, version, has := strings.Cut(group, "/"); has {
			if name == "" || name == "v1" {
				name = `""`
			}
			rule.refuse(fmt.Sprintf("apiGroups[%d]", i), fmt.Sprintf("%.80q is no API group: a rule names it without the version %.20s", group,
				version), "write "+name)
			return
		}
		if group == "v1" {
			rule.refuse(fmt.Sprintf("apiGroups[%d]", i), `"v1" is a version, and no API group`, `write "" for the kinds of Kubernetes' core`)
			return
		}
	}
	if rule.misnamed(groups, resources) {
		return
	}
	if rule.namesKinds(resources) {
		return
	}
	rule.elsewhere(groups, resources)
	if slices.ContainsFunc(groups, func(group string) bool { return !ofKubernetes(group) }) {
		return // other kinds may have verbs of their own
	}
	for i, verb := range rule.texts("verbs") {
		if others := meantVerbs[verb]; others != "" {
			rule.refuse(fmt.Sprintf("verbs[%d]", i), fmt.Sprintf("no kind of Kubernetes has the verb %.40q", verb), "write "+others)
			return
		}
		if nearest := diag.Nearest(verb, verbs); nearest != "" && !slices.Contains(verbs, verb) {
			rule.refuse(fmt.Sprintf("verbs[%d]", i), fmt.Sprintf("no kind of Kubernetes has the verb %.40q", verb), "did you mean "+nearest+"?")
			return
		}
	}
}

// elsewhere reports resources that are all in other API groups than those of the rule.
func (p part) elsewhere(groups, resources []string) {
	if slices.Contains(groups, "*") || slices.ContainsFunc(groups, func(group string) bool { return !ofKubernetes(group) }) {
		return
	}
	var right []string
	for _, resource := range resources {
		name, _, _ := strings.Cut(resource, "/")
		known := groupsOf[name]
		if known == nil || slices.ContainsFunc(known, func(group string) bool { return slices.Contains(groups, group) }) {
			return
		}
		if !slices.Contains(right, known[0]) {
			right = append(right, known[0])
		}
	}
	if len(resources) > 0 {
		p.refuse("apiGroups", fmt.Sprintf("these groups have no %.80s, so the rule grants nothing", strings.Join(resources, ", ")),
			fmt.Sprintf("write apiGroups: [%s]", strings.Join(quoteEmpty(right), ", ")))
	}
}

func quoteEmpty(groups []string) []string {
	out := slices.Clone(groups)
	for i, group := range out {
		if group == "" {
			out[i] = `""`
		}
	}
	return out
}

// plural is the plural of a kind of Kubernetes, as its resource has it.
func plural(kind string) string {
	name := strings.ToLower(kind)
	switch {
	case strings.HasSuffix(name, "ss"):
		return name + "es"
	case strings.HasSuffix(name, "cy"):
		return strings.TrimSuffix(name, "y") + "ies"
	case strings.HasSuffix(name, "s"):
		return name
	}
	return name + "s"
}

// texts returns the texts of a list.
func (p part) texts(field string) []string {
	list, _ := p.fields[field].([]any)
	var out []string
	for _, item := range list {
		if text, ok := item.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// podSecurity is how the names of the labels of Pod Security begin.
const podSecurity = "pod-security.kubernetes.io/"

// securityLevels are the levels of Pod Security.
var securityLevels = []string{"privileged", "baseline", "restricted"}

// namespace judges the labels of Pod Security. The API server refuses a Namespace with another level or version.
func namespace(p part) {
	labels := p.in("metadata").in("labels")
	for _, mode := range []string{"enforce", "audit", "warn"} {
		name := podSecurity + mode
		if level, ok := labels.known(name); ok && !slices.Contains(securityLevels, level) {
			hint := "write one of " + strings.Join(securityLevels, ", ")
			if nearest := diag.Nearest(level, securityLevels); nearest != "" {
				hint = "did you mean " + nearest + "?"
			}
			labels.refuse("["+name+"]", fmt.Sprintf("%.60q is no level of Pod Security", level), hint)
		}
		version, ok := labels.known(name + "-version")
		minor, versioned := strings.CutPrefix(version, "v1.")
		if ok && version != "latest" && (!versioned || minor == "" || !isNumber(minor)) {
			labels.refuse("["+name+"-version]", fmt.Sprintf("%.60q is no version of Kubernetes", version), "write latest, or one such as v1.36")
		}
	}
}
