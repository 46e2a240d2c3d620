package validate

import (
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/validate/refused"
)

// checkRefused reports what the provider of an object refuses, although its CRD takes it. Only what Flux applies is judged: a file may be
// a patch.
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
