package validate

import (
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/validate/refused"
)

// checkRefused reports content that the schema of an object accepts, but that the API server or the object's provider refuses. It checks
// only the objects that Flux applies, because a file may be a patch.
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
	doubt := func(field, summary, hint string) {
		f := o.at(field, rule, summary, hint)
		f.Severity = diag.SeverityWarning
		out = append(out, f)
	}
	refused.JudgeLabels(o.Object, content, doubt)
	refused.Doubt(o.Object, content, doubt)
	return out
}
