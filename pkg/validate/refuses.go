package validate

import (
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/validate/refused"
)

// checkRefused reports what the API server, or the provider of an object, refuses although the schema of the object accepts it. It judges
// only the objects that Flux applies, since a file may be a patch.
func checkRefused(o *object, content map[string]any) diag.Findings {
	if o.content != nil {
		return nil
	}
	rule := RuleValue
	if strings.HasSuffix(groupOf(o), "cluster.x-k8s.io") {
		rule = RuleRefused
	}
	var out diag.Findings
	refused.Judge(o.Object, content, func(field, summary, hint string) {
		out = append(out, o.at(field, rule, summary, hint))
	})
	return out
}
