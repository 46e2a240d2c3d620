package validate

import (
	"fmt"
	"slices"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// checkScaled reports a HorizontalPodAutoscaler that cannot count: it compares the use of a resource with what the containers request, so
// each container of its target requests it. See GetResourceUtilizationRatio and calculatePodRequests in Kubernetes'
// pkg/controller/podautoscaler.
func (s *resolver) checkScaled(p place, o *object) (out diag.Findings) {
	if o.Kind != "HorizontalPodAutoscaler" || groupOf(o) != "autoscaling" || o.Template != "" {
		return nil
	}
	target := s.scaledBy(p, o)
	if target == nil {
		return nil
	}
	if first := s.scalers[target]; first == nil {
		s.scalers[target] = o
	} else if first != o && first.Name != o.Name {
		f := o.at("spec.scaleTargetRef.name", RuleValue,
			fmt.Sprintf("the autoscaler %.80s is for this %s, too, and with two of them none changes anything", first.Name, target.Kind),
			"write the metrics of both into one autoscaler")
		f.Severity = diag.SeverityWarning
		out = append(out, f)
	}
	if strings.Contains(string(target.JSON), "${") {
		return out
	}
	var content, made map[string]any
	_ = kjson.Unmarshal(o.JSON, &content)   // its schema reports wrong types
	_ = kjson.Unmarshal(target.JSON, &made) // its schema reports wrong types
	pods := mapping.Fields(made).In(podSpecs[groupOf(target)+"/"+target.Kind]...)
	for i, metric := range mapping.Fields(content).List("spec", "metrics") {
		for _, field := range []string{"resource", "containerResource"} {
			out = append(out, s.checkMetric(p, o, target, fmt.Sprintf("spec.metrics[%d].%s", i, field), metric.In(field), pods)...)
		}
	}
	return out
}

// checkMetric reports a metric of a container that the target does not have, or of a resource that a container does not request.
func (s *resolver) checkMetric(p place, o, target *object, at string, metric, pods mapping.Fields) diag.Findings {
	containers := pods.List("containers")
	if name := metric.Text("container"); name != "" && !strings.Contains(name, "${") {
		containers = slices.DeleteFunc(containers, func(c mapping.Fields) bool { return c.Text("name") != name })
		if len(containers) == 0 {
			return diag.Findings{o.at(at+".container", RuleMissingObject,
				fmt.Sprintf("the %s %.80s has no container %.63s", target.Kind, target.Name, name), "name one of its containers")}
		}
	}
	resource := strings.ToLower(metric.Text("name"))
	if metric.In("target")["averageUtilization"] == nil || resource != "cpu" && resource != "memory" || pods["resources"] != nil ||
		s.hasLimitRange(p, target.Namespace) {
		return nil
	}
	for _, c := range containers {
		if c.In("resources", "requests")[resource] == nil && c.In("resources", "limits")[resource] == nil {
			f := o.at(at+".name", RuleValue,
				fmt.Sprintf("the container %.63s of the %s %.80s requests no %s, so its use cannot be compared with what it requests",
					c.Text("name"), target.Kind, target.Name, resource), "write resources.requests."+resource+" into the container")
			f.Severity = diag.SeverityWarning
			return diag.Findings{f}
		}
	}
	return nil
}

// scaledBy returns the object of Kubernetes' own kinds that an autoscaler names, or nil.
func (s *resolver) scaledBy(p place, o *object) *object {
	for _, ref := range o.refs {
		if ref.field != "spec.scaleTargetRef.name" {
			continue
		}
		for _, target := range s.called(p, ref.name) {
			if target.Kind == ref.kind && target.Namespace == ref.namespace && groupOf(target) == ref.group {
				return target
			}
		}
	}
	return nil
}

// hasLimitRange tells whether a namespace may give containers requests that their authors did not write.
func (s *resolver) hasLimitRange(p place, namespace string) bool {
	return slices.ContainsFunc(s.applied, func(o *object) bool {
		return o.Kind == "LimitRange" && o.Namespace == namespace && slices.Contains(o.places(), p)
	})
}
