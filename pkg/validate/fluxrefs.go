package validate

import (
	"cmp"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// onThisCluster adds the references of a Flux object to its ServiceAccount and to the objects of its health checks. Flux looks for them on
// the cluster to which the Flux object applies its objects. onThisCluster adds nothing if that is another cluster.
func (c *referrer) onThisCluster() {
	if c.fields.In("spec", "kubeConfig") != nil {
		return
	}
	c.beside("ServiceAccount", "spec.serviceAccountName")
	eachAt(c.fields, "spec.healthChecks[]", func(at string, value any) {
		inner, _ := value.(map[string]any)
		check := mapping.Fields(inner)
		group, _, grouped := strings.Cut(check.Text("apiVersion"), "/")
		if !grouped {
			group = ""
		}
		before := len(c.refs)
		c.named(group, check.Text("kind"), check.Text("namespace"), check.Text("name"), at+".name")
		for i := range c.refs[before:] { // HelmReleases may come from anywhere, and objects of other kinds from their controllers
			c.refs[before+i].guess = grouped && group != "apps" && group != "batch"
		}
	})
}

// declared adds the references in a field to Flux objects that people alone make. kind is their kind, or "" where each reference has it:
// there the name * stands for all.
func (c *referrer) declared(kind, path string) {
	eachAt(c.fields, path, func(at string, value any) {
		inner, _ := value.(map[string]any)
		to := mapping.Fields(inner)
		if name := to.Text("name"); kind != "" || name != "*" {
			c.put(reference{
				rule: RuleMissingObject, kind: cmp.Or(kind, to.Text("kind")), namespace: to.Text("namespace"), name: name, field: at + ".name",
				declared: true,
			})
		}
	})
}
