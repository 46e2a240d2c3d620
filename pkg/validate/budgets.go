package validate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// counted are the kinds that keep a number of pods, and whose scale Kubernetes reads to know how many pods a budget expects: see
// getExpectedScale in Kubernetes' pkg/controller/disruption.
var counted = []string{"/ReplicationController", "apps/Deployment", "apps/ReplicaSet", "apps/StatefulSet"}

// checkBudget reports a PodDisruptionBudget that wants at least as many pods as the objects that it selects keep: no pod can ever be
// evicted, so no node with one can be drained. A share of the pods is rounded up, as Kubernetes does. checkBudget reports nothing where
// something may scale the pods, and nothing of charts.
func (s *resolver) checkBudget(p place, o *object) diag.Findings {
	if o.Kind != "PodDisruptionBudget" || groupOf(o) != "policy" || o.Template != "" || o.Suspended || len(o.selects) != 1 {
		return nil
	}
	if s.run.lacksIn(p, o.Namespace) {
		return nil
	}
	least := fieldsOf(o).In("spec")["minAvailable"]
	if least == nil || least == "100%" { // which is wrong with any number of pods, and reported for it
		return nil
	}
	pods, who := s.podsOf(p, o, &o.selects[0])
	if pods == 0 {
		return nil
	}
	given := intstr.Parse(fmt.Sprint(least))
	wanted, err := intstr.GetScaledValueFromIntOrPercent(&given, pods, true)
	if err != nil || wanted < pods {
		return nil //nolint:nilerr // the schema judges its form
	}
	summary := fmt.Sprintf("it lets no pod be evicted, so no node with one can be drained: %s has %d", who, pods)
	if given.Type == intstr.String {
		summary += fmt.Sprintf(", and %v of that is rounded up", least)
	}
	f := o.at("spec.minAvailable", RuleValue, summary,
		"run more of them, or write maxUnavailable: 1; or say in a comment who evicts the pods by hand: # fleetctl:ignore invalid-value reason")
	f.Severity = diag.SeverityWarning
	return diag.Findings{f}
}

// podsOf returns how many pods the objects that a selector finds keep together, and which objects. It returns 0 if that is not certain, as
// beside a chart whose objects are unknown.
func (s *resolver) podsOf(p place, o *object, sel *selection) (pods int, who string) {
	if s.strange[p] || len(s.surround().releases[space{p, o.Namespace}]) > 0 {
		return 0, ""
	}
	var found []string
	for _, l := range s.surround().labelled[space{p, o.Namespace}][sel.what] {
		switch {
		case l.open:
			return 0, ""
		case !sel.finds(l):
			continue
		case !slices.Contains(counted, groupOf(l.by)+"/"+l.by.Kind) || s.isScaled(p, l.by):
			return 0, ""
		}
		n, given := fieldsOf(l.by).In("spec")["replicas"].(int64)
		if !given {
			n = 1 // unless an autoscaler that nobody knows sets it
			if !s.knows(p, o.Namespace, "HorizontalPodAutoscaler") {
				return 0, ""
			}
		}
		pods += int(n)
		found = append(found, fmt.Sprintf("%s %.80s", l.by.Kind, l.by.Name))
	}
	if len(found) > 1 {
		return pods, "what it selects together (" + listOf(found) + ")"
	}
	return pods, strings.Join(found, "")
}

// isScaled tells whether an object of any kind names another one as what it scales.
func (s *resolver) isScaled(p place, o *object) bool {
	if s.scaled == nil {
		s.scaled = map[known]bool{}
		for _, scaler := range s.applied {
			if scaler.Kind != "HorizontalPodAutoscaler" && !strings.Contains(string(scaler.JSON), `"scaleTargetRef"`) {
				continue
			}
			for _, at := range scaler.places() {
				s.scaled[known{place: at, namespace: scaler.Namespace, name: fieldsOf(scaler).Text("spec", "scaleTargetRef", "name")}] = true
			}
		}
	}
	return s.scaled[known{place: p, namespace: o.Namespace, name: o.Name}]
}

// fieldsOf returns the fields of an applied object.
func fieldsOf(o *object) mapping.Fields {
	var content map[string]any
	_ = kjson.Unmarshal(o.JSON, &content) // its schema reports wrong types
	return content
}
