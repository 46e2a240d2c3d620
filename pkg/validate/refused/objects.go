package refused

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const rbacGroup = "rbac.authorization.k8s.io"

// role judges the rules of a Role or ClusterRole.
func role(p part) {
	namespaced := p.object.Kind == "Role"
	for _, rule := range p.each("rules") {
		switch {
		case rule.has("nonResourceURLs") && namespaced:
			rule.refuse("nonResourceURLs", "a Role has rules for objects alone", "put the rule into a ClusterRole")
		case rule.has("nonResourceURLs") && (rule.has("resources") || rule.has("apiGroups")):
			rule.refuse("nonResourceURLs", "a rule is about objects or about addresses, not both", "make two rules of it")
		case rule.has("nonResourceURLs"):
		case !rule.has("apiGroups"):
			rule.refuse("", "a rule needs apiGroups", `write apiGroups: [""] for the kinds of Kubernetes' core`)
		case !rule.has("resources"):
			rule.refuse("", "a rule needs resources", "write the plural of each kind, as in resources: [pods]")
		default:
			grants(rule)
		}
	}
}

// roleBinding judges the subjects and the role of a RoleBinding or ClusterRoleBinding.
func roleBinding(p part) {
	p.in("roleRef").oneOf("apiGroup", rbacGroup)
	if p.object.Kind == "ClusterRoleBinding" {
		p.in("roleRef").oneOf("kind", "ClusterRole")
	}
	for _, subject := range p.each("subjects") {
		group, ok := subject.known("apiGroup")
		switch subject.word("kind") {
		case "ServiceAccount":
			if ok {
				subject.refuse("apiGroup", "a ServiceAccount is in no group", "take apiGroup away")
			}
			if p.object.Kind == "ClusterRoleBinding" && !subject.given("namespace") {
				subject.refuse("", "the namespace of the ServiceAccount is missing", "write namespace")
			}
		case "User", "Group":
			if ok && group != rbacGroup {
				subject.refuse("apiGroup", fmt.Sprintf("%.80q is not possible here", group), "write "+rbacGroup)
			}
		}
	}
}

// disruptionBudget judges a PodDisruptionBudget.
func disruptionBudget(p part) {
	spec := p.in("spec")
	spec.together("maxUnavailable", "minAvailable")
	spec.share("maxUnavailable")
	spec.share("minAvailable")
}

// claim judges a PersistentVolumeClaim.
func claim(p part) {
	spec := p.in("spec")
	if len(spec.fields) == 0 {
		return
	}
	if !spec.has("accessModes") {
		spec.refuse("", "a claim needs accessModes", "write accessModes: [ReadWriteOnce]")
	}
	spec.in("resources").in("requests").bytes("storage")
	spec.in("resources").in("requests").positive("storage")
	if !spec.in("resources").in("requests").given("storage") {
		spec.refuse("", "a claim needs a size", "write it under resources.requests.storage, as in 10Gi")
	}
}

// countable are the names without a group that a ResourceQuota can limit.
var countable = []string{
	"cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.storage", "requests.ephemeral-storage", "limits.cpu",
	"limits.memory", "limits.ephemeral-storage", "pods", "resourcequotas", "services", "replicationcontrollers", "secrets",
	"persistentvolumeclaims", "configmaps", "services.nodeports", "services.loadbalancers",
}

// quota judges the names that a ResourceQuota limits.
func quota(p part) {
	hard := p.in("spec").in("hard")
	for _, name := range hard.names() {
		if !strings.ContainsAny(name, "/$") && !strings.Contains(name, "hugepages-") && !slices.Contains(countable, name) {
			hard.refuse("["+name+"]", "no quota counts that",
				"write one of "+strings.Join(countable, ", ")+"; other kinds with their group, as in count/jobs.batch")
		}
	}
}

// limitRange judges the order of the limits of a LimitRange, such as min and max.
func limitRange(p part) {
	for _, limit := range p.in("spec").each("limits") {
		for _, pair := range [][2]string{
			{"min", "max"},
			{"min", "defaultRequest"},
			{"min", "default"},
			{"defaultRequest", "default"},
			{"defaultRequest", "max"},
			{"default", "max"},
		} {
			if limit.beyond(pair[0], pair[1]) {
				break
			}
		}
	}
}

// beyond reports a quantity in the field low that is more than the quantity of the same name in the field high.
func (p part) beyond(low, high string) bool {
	below, above := p.in(low), p.in(high)
	for _, name := range below.names() {
		least, ok := below.quantity(name)
		most, limited := above.quantity(name)
		if ok && limited && least.Cmp(most) > 0 {
			below.refuse(name, fmt.Sprintf("%s is more than %s, which is %s", least.String(), high, most.String()), "let it be at most "+high)
			return true
		}
	}
	return false
}

// neededKeys are the keys that a Secret of a type must have.
var neededKeys = map[string][]string{
	"kubernetes.io/tls":              {"tls.crt", "tls.key"},
	"kubernetes.io/dockerconfigjson": {".dockerconfigjson"},
	"kubernetes.io/dockercfg":        {".dockercfg"},
	"kubernetes.io/ssh-auth":         {"ssh-privatekey"},
}

// secretKeys judges the keys of a Secret. Its values may be encrypted.
func secretKeys(p part) {
	data, texts := p.in("data"), p.in("stringData")
	data.keys()
	texts.keys()
	for _, key := range neededKeys[p.word("type")] {
		if !data.given(key) && !texts.given(key) {
			p.refuse("type", fmt.Sprintf("a Secret of the type %s needs the key %s", p.word("type"), key), "add it to data or stringData")
			return
		}
	}
}

// configKeys judges the keys of a ConfigMap.
func configKeys(p part) {
	data, binary := p.in("data"), p.in("binaryData")
	data.keys()
	binary.keys()
	for _, key := range binary.names() {
		if data.given(key) {
			binary.refuse("["+key+"]", "the key is in data, too", "take one of the two away")
		}
	}
}

// keys reports keys that are not valid in a Secret or ConfigMap.
func (p part) keys() {
	for _, key := range p.names() {
		if !strings.Contains(key, "${") && len(validation.IsConfigMapKey(key)) > 0 {
			p.refuse("["+key+"]", fmt.Sprintf("%.80q is no key", key), "write letters, digits, hyphens, underscores and dots, as in app.yaml")
		}
	}
}

// priorityClass judges the number of a PriorityClass, and its name.
func priorityClass(p part) {
	const most = 1000000000
	name := p.object.Name
	if n, ok := p.number("value"); ok && n > most && !strings.HasPrefix(name, "system-") {
		p.refuse("value", fmt.Sprintf("it is more than %d, which only those of Kubernetes itself have", most), "write a smaller number")
	}
	if strings.HasPrefix(name, "system-") && name != "system-node-critical" && name != "system-cluster-critical" {
		p.refuse("metadata.name", "names that begin with system- are those of Kubernetes itself", "choose another name")
	}
}
