package validate

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// fluxPatches are the patches that kustomize applies for objects of Flux.
var fluxPatches = map[string]string{
	"kustomize.toolkit.fluxcd.io/Kustomization": "spec.patches[]",
	"helm.toolkit.fluxcd.io/HelmRelease":        "spec.postRenderers[].kustomize.patches[]",
}

// checkFluxForms reports fields of a Flux object that its schema takes in any form and that its controller cannot use. It needs no chart.
func checkFluxForms(o *object, content map[string]any) (out diag.Findings) {
	group := groupOf(o) + "/" + o.Kind
	if path := fluxPatches[group]; path != "" && o.content == nil {
		eachAt(content, path, func(at string, value any) {
			patch, _ := value.(map[string]any)
			if patch["target"] == nil && render.NeedsTarget(mapping.Fields(patch).Text("patch")) {
				out = append(out, o.at(at, RuleKustomize, render.NeedsTargetSummary, render.NeedsTargetHint))
			}
		})
	}
	if group != "helm.toolkit.fluxcd.io/HelmRelease" {
		return out
	}
	spec := mapping.Fields(content).In("spec")
	return append(append(out, checkOwnValues(o, spec["values"])...), checkTargetPaths(o, spec)...)
}

// checkOwnValues reports values of a HelmRelease that are no mapping. The CRD takes any JSON, and helm-controller leaves others out without
// a word: see GetValues in its API.
func checkOwnValues(o *object, values any) diag.Findings {
	var what string
	hint := "write them as in the values.yaml of the chart"
	switch values := values.(type) {
	case nil, map[string]any:
		return nil
	case string:
		what = "a text"
		if strings.Contains(values, "${") {
			return nil // Flux may fill in a mapping
		}
		if isMapping(values) {
			hint = "remove the | behind values, which makes a text of what follows"
		}
	case []any:
		what = "a list"
	default:
		what = fmt.Sprintf("the value %.40v", values)
	}
	return diag.Findings{o.at("spec.values", RuleType, "values are a mapping, and this is "+what+
		": Flux installs the chart without them", hint)}
}

// targetPaths matches the paths that the CRD of a HelmRelease takes. The schema reports others.
var targetPaths = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([a-zA-Z0-9_\-.\\/]|\[[0-9]{1,5}\])+$`) })

// checkTargetPaths reports paths in valuesFrom that the CRD takes and Helm cannot follow.
func checkTargetPaths(o *object, spec mapping.Fields) (out diag.Findings) {
	for i, from := range spec.List("valuesFrom") {
		target := from.Text("targetPath")
		if !targetPaths().MatchString(target) {
			continue
		}
		if err := render.CheckTargetPath(target); err != nil {
			out = append(out, o.at(fmt.Sprintf("spec.valuesFrom[%d].targetPath", i), RuleValue,
				fmt.Sprintf("%.80q is no path of a value: %v", target, err), "write names with dots between them, such as server.ports[0].name"))
		}
	}
	return out
}
