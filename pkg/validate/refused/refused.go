// Package refused knows which content the API server, and the webhooks and controllers of Cluster API's providers, refuse although the
// schema of the object accepts it.
package refused

import (
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// part is a mapping in an object, with its path. The rules of a provider's webhooks and controllers are checked part by part.
type part struct {
	object *render.Object
	fields mapping.Fields
	at     string
	report func(field, summary, hint string)
}

// refusals check the spec of a provider's kind as the provider's webhooks and controllers do. A kind that ends in Template contains the
// spec of the objects that are made from it.
var refusals = map[string]func(part){
	"AWSCluster":                          awsCluster,
	"AWSClusterTemplate":                  awsCluster,
	"AWSClusterControllerIdentity":        awsControllerIdentity,
	"AWSClusterRoleIdentity":              awsRoleIdentity,
	"AWSFargateProfile":                   eksFargate,
	"AWSMachine":                          awsMachine,
	"AWSMachineTemplate":                  awsMachine,
	"AWSMachinePool":                      awsMachinePool,
	"AWSManagedControlPlane":              eksControlPlane,
	"AWSManagedControlPlaneTemplate":      eksControlPlane,
	"AWSManagedMachinePool":               eksPool,
	"AzureASOManagedCluster":              asoResources,
	"AzureASOManagedClusterTemplate":      asoResources,
	"AzureASOManagedControlPlane":         asoControlPlane,
	"AzureASOManagedControlPlaneTemplate": asoControlPlane,
	"AzureASOManagedMachinePool":          asoPool,
	"AzureASOManagedMachinePoolTemplate":  asoPool,
	"AzureCluster":                        azureCluster,
	"AzureClusterIdentity":                azureIdentity,
	"AzureMachine":                        azureMachine,
	"AzureMachineTemplate":                azureMachine,
	"AzureMachinePool":                    azureMachinePool,
	"AzureManagedControlPlane":            aksControlPlane,
	"AzureManagedControlPlaneTemplate":    aksControlPlaneTemplate,
	"AzureManagedMachinePool":             aksPool,
	"AzureManagedMachinePoolTemplate":     aksPool,
	"GCPCluster":                          gcpCluster,
	"GCPClusterTemplate":                  gcpCluster,
	"GCPMachine":                          gcpMachine,
	"GCPMachineTemplate":                  gcpMachine,
	"GCPManagedCluster":                   gkeCluster,
	"GCPManagedControlPlane":              gkeControlPlane,
	"GCPManagedControlPlaneTemplate":      gkeControlPlane,
	"GCPManagedMachinePool":               gkePool,
	"GCPManagedMachinePoolTemplate":       gkePool,
	"OpenStackCluster":                    openstackCluster,
	"OpenStackClusterTemplate":            openstackCluster,
	"OpenStackMachine":                    openstackMachine,
	"OpenStackMachineTemplate":            openstackMachine,
	"OpenStackServer":                     openstackMachine,
	"ROSAControlPlane":                    rosaControlPlane,
	"ROSAMachinePool":                     rosaPool,
	"VSphereCluster":                      vsphereCluster,
	"VSphereClusterTemplate":              vsphereCluster,
	"VSphereFailureDomain":                vsphereFailureDomain,
	"VSphereMachine":                      vsphereMachine,
	"VSphereMachineTemplate":              vsphereMachine,
	"VSphereVM":                           vsphereMachine,
}

// Judge reports content that the schema of an object accepts, but that the API server or the object's provider refuses.
func Judge(o *render.Object, content map[string]any, report func(field, summary, hint string)) {
	group, _, grouped := strings.Cut(o.APIVersion, "/")
	if !grouped {
		group = ""
	}
	whole := part{o, content, "", report}
	for _, known := range []map[string]func(part){builtIn, core} {
		if judge := known[group+"/"+o.Kind]; judge != nil {
			judge(whole)
			return
		}
	}
	if group == "infrastructure.cluster.x-k8s.io" && strings.HasSuffix(o.Kind, "Cluster") {
		endpoint(whole.in("spec"))
	}
	judge := refusals[o.Kind]
	if judge == nil || !strings.HasSuffix(group, ".cluster.x-k8s.io") || strings.HasPrefix(group, "vmware.") {
		return
	}
	p := whole.in("spec")
	if strings.HasSuffix(o.Kind, "Template") {
		p = p.in("template").in("spec")
	}
	judge(p)
}

// isTemplate tells whether the object is a template, from which several objects are made.
func (p part) isTemplate() bool { return strings.HasSuffix(p.object.Kind, "Template") }

// in returns the mapping in a field, or an empty one.
func (p part) in(field string) part {
	return part{p.object, p.fields.In(field), p.path(field), p.report}
}

// each returns the mappings of the list in a field.
func (p part) each(field string) []part {
	items := p.fields.List(field)
	out := make([]part, len(items))
	for i, item := range items {
		out[i] = part{p.object, item, fmt.Sprintf("%s[%d]", p.path(field), i), p.report}
	}
	return out
}

func (p part) path(field string) string {
	switch {
	case p.at == "":
		return field
	case field == "":
		return p.at
	case field[0] == '[': // a name with dots in it
		return p.at + field
	}
	return p.at + "." + field
}

// has tells whether a field is set, and is not null, false, zero or empty.
func (p part) has(field string) bool {
	switch v := p.fields[field].(type) {
	case nil:
		return false
	case string:
		return v != ""
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

// given tells whether a field is set at all, also to false, zero or an empty value.
func (p part) given(field string) bool { return p.fields[field] != nil }

// word returns the text in a field.
func (p part) word(field string) string { return p.fields.Text(field) }

// known returns the text in a field. ok is false if the field has no text, or a text with a variable.
func (p part) known(field string) (text string, ok bool) {
	text = p.word(field)
	return text, text != "" && !strings.Contains(text, "${")
}

// names returns the names of the fields, sorted.
func (p part) names() []string { return slices.Sorted(maps.Keys(p.fields)) }

// isZero tells whether a field is 0 or 0%.
func (p part) isZero(field string) bool {
	n, ok := p.number(field)
	return ok && n == 0 || p.word(field) == "0%"
}

// number returns the number in a field.
func (p part) number(field string) (n float64, ok bool) {
	switch v := p.fields[field].(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// refuse reports a field. The field "" is the part itself.
func (p part) refuse(field, summary, hint string) {
	p.report(p.path(field), summary, hint)
}

// together reports that both fields are set. An empty text does not count.
func (p part) together(field, other string) {
	if p.given(field) && p.given(other) && p.fields[field] != "" && p.fields[other] != "" {
		p.refuse(field, "it cannot be set together with "+other, "remove one of the two")
	}
}

// network returns the range in a field. It reports a text that is no range.
func (p part) network(field string) (prefix netip.Prefix, ok bool) {
	text, ok := p.known(field)
	if !ok {
		return prefix, false
	}
	return p.parse(field, text)
}

func (p part) parse(field, text string) (netip.Prefix, bool) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		p.refuse(field, fmt.Sprintf("%.80q is no network", text), "write an address and the length of its prefix, as in 10.0.0.0/16")
		return prefix, false
	}
	return prefix, true
}

// ranges returns the ranges in a list of texts, each with its field. It skips texts that are no ranges, which are reported elsewhere.
func (p part) ranges(field string) iter.Seq2[string, netip.Prefix] {
	list, _ := p.fields[field].([]any)
	return func(yield func(string, netip.Prefix) bool) {
		for i, item := range list {
			text, _ := item.(string)
			prefix, err := netip.ParsePrefix(text)
			if err == nil && !yield(fmt.Sprintf("%s[%d]", field, i), prefix) {
				return
			}
		}
	}
}

// networks returns the ranges in a list of texts. It reports texts that are no ranges.
func (p part) networks(field string) (all []netip.Prefix) {
	list, _ := p.fields[field].([]any)
	for i, item := range list {
		text, _ := item.(string)
		if text == "" || strings.Contains(text, "${") {
			continue
		}
		if prefix, ok := p.parse(fmt.Sprintf("%s[%d]", field, i), text); ok {
			all = append(all, prefix)
		}
	}
	return all
}
