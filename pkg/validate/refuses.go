package validate

import (
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/validate/refused"
)

// checkRefused reports the settings of an object that its provider refuses although its CRD accepts them. It judges only the objects that
// Flux applies, since a file may be a patch.
func checkRefused(o *object, content map[string]any) diag.Findings {
	if o.content != nil {
		return nil
	}
	var out diag.Findings
	refused.Judge(o.Object, content, func(field, summary, hint string) {
		out = append(out, o.at(field, RuleRefused, summary, hint))
	})
	return out
}
