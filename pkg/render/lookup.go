package render

import (
	"cmp"
	"encoding/json"
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// learn remembers what other objects refer to.
func (w *walk) learn(all []*content, targets []string) {
	for _, c := range all {
		name := lookupKey(targets, c.Metadata.Namespace, c.Metadata.Name)
		switch {
		case c.Kind == "ConfigMap" && c.APIVersion == "v1":
			var o struct {
				Data map[string]string `json:"data"`
			}
			if err := json.Unmarshal(c.json, &o); err == nil {
				w.configMaps[name] = o.Data
			}
		case isFlux(c, "GitRepository"):
			var o struct {
				Spec struct {
					URL string `json:"url"`
				} `json:"spec"`
			}
			if err := json.Unmarshal(c.json, &o); err == nil {
				w.sources[name] = o.Spec.URL
			}
		case isFlux(c, "HelmChart"):
			var o struct {
				Spec sourcev1.HelmChartSpec `json:"spec"`
			}
			if err := json.Unmarshal(c.json, &o); err == nil {
				w.charts[name] = &chartSource{
					chart: o.Spec.Chart, sourceKind: o.Spec.SourceRef.Kind, sourceNamespace: c.Metadata.Namespace, sourceName: o.Spec.SourceRef.Name,
					valuesFiles: o.Spec.ValuesFiles, ignoreMissing: o.Spec.IgnoreMissingValuesFiles,
				}
			}
		}
	}
}

// chartSource is what a HelmChart packs, or a HelmRelease without one.
type chartSource struct {
	chart                                   string
	sourceKind, sourceNamespace, sourceName string
	valuesFiles                             []string
	ignoreMissing                           bool
}

// ownChart is the chart that a HelmRelease in a namespace has to itself; nil where it has none.
func ownChart(spec *helmv2.HelmReleaseSpec, namespace string) *chartSource {
	if spec.Chart == nil {
		return nil
	}
	t := spec.Chart.Spec
	return &chartSource{
		chart: t.Chart, sourceKind: cmp.Or(t.SourceRef.Kind, "GitRepository"), sourceNamespace: cmp.Or(t.SourceRef.Namespace, namespace),
		sourceName: t.SourceRef.Name, valuesFiles: t.ValuesFiles, ignoreMissing: t.IgnoreMissingValuesFiles,
	}
}

func lookupKey(targets []string, namespace, name string) string {
	first := "" // what several targets have in common is the same on each
	if len(targets) > 0 {
		first = targets[0]
	}
	return first + "\x00" + namespace + "\x00" + name
}

func (w *walk) configMap(targets []string, namespace, name string) (map[string]string, bool) {
	data, ok := w.configMaps[lookupKey(targets, namespace, name)]
	return data, ok
}

// foreign says why a source is not the files at hand; "" where it is.
func (w *walk) foreign(targets []string, kind, namespace, name string) string {
	if w.own.Name != "" && len(targets) == 0 && kind == w.own.Kind && namespace == w.own.Namespace && name == w.own.Name {
		return "" // be it an artifact that is made of this repo
	}
	if kind != "GitRepository" {
		return fmt.Sprintf("it comes from the %s %s", kind, name)
	}
	url, ok := w.sources[lookupKey(targets, namespace, name)]
	own := cmp.Or(w.sources[lookupKey(nil, fluxSystem, fluxSystem)], w.r.fleet.Spec.Git.URL)
	if !ok || own == "" || url == own || url == w.r.fleet.Spec.Git.URL {
		return ""
	}
	return fmt.Sprintf("it comes from another repository, that of the GitRepository %s", name)
}

// leavesOut says of a source of this repo that hands on something else than its files: that is not what is rendered.
func (w *walk) leavesOut(o *Object) {
	if !isFluxKind(o.APIVersion, o.Kind, "GitRepository") || w.foreign(o.Targets, o.Kind, o.Namespace, o.Name) != "" {
		return
	}
	var source sourcev1.GitRepository
	if err := json.Unmarshal(o.JSON, &source); err != nil {
		w.problem(o, diag.SeverityError, RuleSyntax, err.Error())
		return
	}
	for field, there := range map[string]bool{
		"ignore": source.Spec.Ignore != nil, "sparseCheckout": len(source.Spec.SparseCheckout) > 0, "include": len(source.Spec.Include) > 0,
	} {
		if there {
			w.problem(o, diag.SeverityWarning, RuleSource, "spec."+field+" changes what Flux gets to see of this repo, and what is rendered is the whole of it")
		}
	}
}
