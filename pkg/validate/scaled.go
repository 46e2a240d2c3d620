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
	at := scaledIn{p, target}
	if first := s.scalers[at]; first == nil {
		s.scalers[at] = o
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
	path := podSpecs[groupOf(target)+"/"+target.Kind]
	if path == nil {
		return out // somebody else's kind has its pods elsewhere
	}
	pods := mapping.Fields(made).In(path...)
	for i, metric := range mapping.Fields(content).List("spec", "metrics") {
		for _, field := range []string{"resource", "containerResource"} {
			out = append(out, s.checkMetric(p, o, target, fmt.Sprintf("spec.metrics[%d].%s", i, field), metric.In(field), pods)...)
		}
	}
	return out
}

// scaledIn is the target of an autoscaler, in one of its places.
type scaledIn struct {
	place  place
	target *object
}

// checkMetric reports a metric of a container that the target does not have, or of a resource that a container does not request. These are
// warnings: a webhook may add the container, such as istio-proxy, or the request.
func (s *resolver) checkMetric(p place, o, target *object, at string, metric, pods mapping.Fields) diag.Findings {
	containers := pods.List("containers")
	for _, c := range pods.List("initContainers") {
		if c.Text("restartPolicy") == "Always" {
			containers = append(containers, c)
		}
	}
	if name := metric.Text("container"); name != "" && !strings.Contains(name, "${") {
		containers = slices.DeleteFunc(containers, func(c mapping.Fields) bool { return c.Text("name") != name })
		if len(containers) == 0 {
			f := o.at(at+".container", RuleMissingObject,
				fmt.Sprintf("the %s %.80s has no container %.63s", target.Kind, target.Name, name), "name one of its containers")
			f.Severity = diag.SeverityWarning
			return diag.Findings{f}
		}
	}
	resource := strings.ToLower(metric.Text("name"))
	if metric.In("target")["averageUtilization"] == nil || resource != "cpu" && resource != "memory" || pods["resources"] != nil ||
		s.requestsAreAdded(p, target) {
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

// requestsAreAdded tells whether the containers of an object may get requests that their authors did not write: from a LimitRange of the
// namespace, or a VerticalPodAutoscaler.
func (s *resolver) requestsAreAdded(p place, o *object) bool {
	if s.run.lacksIn(p, o.Namespace) {
		return true
	}
	if s.adders == nil {
		s.adders = map[known]bool{}
		for _, adder := range s.applied {
			k := known{kind: adder.Kind, namespace: adder.Namespace}
			switch adder.Kind {
			default:
				continue
			case "LimitRange":
			case "VerticalPodAutoscaler":
				var content map[string]any
				_ = kjson.Unmarshal(adder.JSON, &content) // its schema reports wrong types
				k.name = mapping.Fields(content).Text("spec", "targetRef", "name")
			}
			for _, k.place = range adder.places() {
				s.adders[k] = true
			}
		}
	}
	return s.adders[known{place: p, kind: "LimitRange", namespace: o.Namespace}] ||
		s.adders[known{place: p, kind: "VerticalPodAutoscaler", namespace: o.Namespace, name: o.Name}]
}
