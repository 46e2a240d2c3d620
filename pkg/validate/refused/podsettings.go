package refused

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// tolerations judges the tolerations of pods: each compares a value, or asks whether the taint exists.
func tolerations(spec part) {
	for _, t := range spec.each("tolerations") {
		operator, known := t.known("operator")
		switch {
		case operator == "Exists" && t.has("value"):
			t.refuse("value", "with operator Exists there is no value to compare", "take value away, or write operator: Equal")
		case !t.has("key") && operator != "Exists" && (known || !t.given("operator")):
			t.refuse("", "a toleration without a key needs operator Exists", "write key, or write operator: Exists to tolerate every taint")
		}
	}
}

// security judges the securityContext of a container, with what the pod says for all its containers.
func security(pod, container part) {
	own, all := container.in("securityContext"), pod.in("securityContext")
	privileged, _ := own.fields["privileged"].(bool)
	if escalates, given := own.fields["allowPrivilegeEscalation"].(bool); privileged && given && !escalates {
		own.refuse("allowPrivilegeEscalation", "it cannot be false where privileged is true", "take one of the two away")
	}
	from := own
	if !own.given("runAsUser") {
		from = all
	}
	nonRoot, given := own.fields["runAsNonRoot"].(bool)
	if !given {
		nonRoot, _ = all.fields["runAsNonRoot"].(bool)
	}
	if user, ok := from.number("runAsUser"); ok && user == 0 && nonRoot {
		from.refuse("runAsUser", "user 0 is root, and runAsNonRoot is true: kubelet does not start the container",
			"write another user, or let runAsNonRoot be false")
	}
}

// podFields are the fields of a pod that a variable of a container can have.
var podFields = []string{
	"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs",
	"status.podIP", "status.podIPs",
}

// keyedField matches one label or annotation of a pod.
var keyedField = regexp.MustCompile(`^metadata\.(labels|annotations)\['[^']+'\]$`)

// resourceFields matches the resources of a container that a variable can have.
var resourceFields = regexp.MustCompile(`^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)$`)

// fieldVariable judges a variable with a field of the pod, or with a resource of a container.
func fieldVariable(variable part) {
	from := variable.in("valueFrom")
	if path, ok := from.in("fieldRef").known("fieldPath"); ok && !slices.Contains(podFields, path) && !keyedField.MatchString(path) {
		hint := "write one of " + strings.Join(podFields, ", ") + ", or metadata.labels['NAME']"
		if nearest := diag.Nearest(path, podFields); nearest != "" {
			hint = "did you mean " + nearest + "?"
		}
		from.in("fieldRef").refuse("fieldPath", fmt.Sprintf("no variable can have the field %.80q of a pod", path), hint)
	}
	if name, ok := from.in("resourceFieldRef").known("resource"); ok && !resourceFields.MatchString(name) {
		from.in("resourceFieldRef").refuse("resource", fmt.Sprintf("no variable can have %.80q", name),
			"write limits or requests, and the resource, as in limits.memory")
	}
}

// ownResources are the resources of a container that have no group in their names.
var ownResources = []string{"cpu", "memory", "ephemeral-storage"}

// resourceNames reports names of resources that no node has.
func (p part) resourceNames() {
	for _, name := range p.names() {
		if strings.ContainsAny(name, "/$") || strings.HasPrefix(name, "hugepages-") || slices.Contains(ownResources, name) {
			continue
		}
		hint := "write one of " + strings.Join(ownResources, ", ") + "; other resources have a group, as in nvidia.com/gpu"
		if nearest := diag.Nearest(name, ownResources); nearest != "" {
			hint = "did you mean " + nearest + "?"
		}
		p.refuse(name, fmt.Sprintf("%.80q is no resource of a container", name), hint)
	}
}

// bytes reports a number of bytes in thousandths. Kubernetes takes it, and makes less than a byte of 512m.
func (p part) bytes(names ...string) {
	for _, name := range names {
		text, ok := p.known(name)
		if number, thousandths := strings.CutSuffix(text, "m"); ok && thousandths && isNumber(number) {
			p.refuse(name, fmt.Sprintf("%.40s is %.40s thousandths of a byte", text, number), "for mebibytes, write "+number+"Mi")
		}
	}
}
