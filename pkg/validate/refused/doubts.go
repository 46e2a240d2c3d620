package refused

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// doubts are the checks of content that an API server takes, and that works otherwise than its author meant.
var doubts = map[string]func(part){
	"policy/PodDisruptionBudget":          evictsNothing,
	"autoscaling/HorizontalPodAutoscaler": metricNames,
	"/Pod":                                func(p part) { references(p.in("spec")) },
	"apps/DaemonSet":                      referencesOfTemplate,
	"apps/Deployment":                     referencesOfTemplate,
	"apps/ReplicaSet":                     referencesOfTemplate,
	"apps/StatefulSet":                    referencesOfTemplate,
	"batch/Job":                           referencesOfTemplate,
	"batch/CronJob":                       func(p part) { references(p.in("spec").in("jobTemplate").in("spec").in("template").in("spec")) },
	"cluster.x-k8s.io/ClusterClass":       templateVariables,
}

// Doubt reports content that an API server takes, although it can hardly be meant. It reports nothing of charts, whose authors may need a
// value that makes no difference here.
func Doubt(o *render.Object, content map[string]any, report func(field, summary, hint string)) {
	group, _, grouped := strings.Cut(o.APIVersion, "/")
	if !grouped {
		group = ""
	}
	if judge := doubts[group+"/"+o.Kind]; judge != nil && o.Template == "" {
		judge(part{o, content, "", report})
	}
}

// evictsNothing reports a budget that lets no pod go. A node with such a pod cannot be drained, so upgrades of its cluster stop there.
func evictsNothing(p part) {
	const hint = "let it be at least 1, or say in a comment who evicts the pods by hand: # fleetctl:ignore invalid-value reason"
	spec := p.in("spec")
	switch {
	case spec.given("maxUnavailable") && spec.isZero("maxUnavailable"):
		spec.refuse("maxUnavailable", "it lets no pod be evicted, so no node with one can be drained", hint)
	case spec.word("minAvailable") == "100%":
		spec.refuse("minAvailable", "it lets no pod be evicted, so no node with one can be drained", strings.Replace(hint, "it be at least 1",
			"it be less", 1))
	}
}

// metricNames reports the names of Kubernetes' own metrics in capitals: nothing measures them.
func metricNames(p part) {
	for _, metric := range p.in("spec").each("metrics") {
		for _, field := range []string{"resource", "containerResource"} {
			of := metric.in(field)
			name, ok := of.known("name")
			if lower := strings.ToLower(name); ok && name != lower && (lower == "cpu" || lower == "memory") {
				of.refuse("name", fmt.Sprintf("nothing measures %.40q", name), "write "+lower)
			}
		}
	}
}

func referencesOfTemplate(p part) { references(p.in("spec").in("template").in("spec")) }

// dependent matches a reference to a variable in a text that the kubelet expands, and the sign that keeps it from doing so.
var dependent = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\$|\$\(([A-Z][A-Z0-9_]*)\)`) })

// ofServices matches the variables that the kubelet adds for each Service of a namespace.
var ofServices = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`_(SERVICE_(HOST|PORT)|PORT)(_|$)`) })

// references reports $(NAME) where the container has no variable of this name. The kubelet leaves it as it is, without a word: see
// makeEnvironmentVariables in pkg/kubelet/kubelet_pods.go and third_party/forked/golang/expansion. A name with small letters is more
// likely a command for a shell.
func references(spec part) {
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range spec.each(list) {
			if c.has("envFrom") {
				continue // its names are elsewhere
			}
			var all []string
			for _, variable := range c.each("env") {
				all = append(all, variable.word("name"))
			}
			for i, variable := range c.each("env") {
				variable.expands("value", variable.word("value"), all[:i], all)
			}
			for _, field := range []string{"command", "args"} {
				items, _ := c.fields[field].([]any)
				for i, item := range items {
					if text, ok := item.(string); ok {
						c.expands(fmt.Sprintf("%s[%d]", field, i), text, all, all)
					}
				}
			}
		}
	}
}

// expands reports a reference in a text to a variable that is not among those that are set before. all are the variables of the container.
func (p part) expands(field, text string, before, all []string) {
	if strings.Contains(text, "${") {
		return
	}
	for _, found := range dependent().FindAllStringSubmatch(text, -1) {
		name := found[1]
		if name == "" || slices.Contains(before, name) || ofServices().MatchString(name) || len(all) == 0 && !strings.HasPrefix(field, "value") {
			continue
		}
		if slices.Contains(all, name) {
			p.refuse(field, fmt.Sprintf("$(%.60s) stays as it is: the variable is set further down, and only those above count", name),
				"move the variable "+name+" above this one")
			return
		}
		hint := "add it to env, or write $$(" + name + ") for the text itself"
		if nearest := diag.Nearest(name, all); nearest != "" {
			hint = "did you mean " + nearest + "?"
		}
		p.refuse(field, fmt.Sprintf("$(%.60s) stays as it is: the container has no variable of this name", name), hint)
		return
	}
}
