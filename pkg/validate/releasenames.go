package validate

import (
	"cmp"
	"fmt"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// helmName is what identifies a release of Helm: the cluster that has it, the namespace of its storage, and its name.
type helmName struct {
	place                      place
	kubeConfig, storage, named string
	// chart and target are the chart and the namespace of the objects. With them, storage is "": two releases of one chart and one name make
	// objects of one name, wherever Helm stores them.
	chart, target string
}

// checkReleaseNames reports HelmReleases that are one release for Helm, which stores releases by their name and the namespace of the
// storage. Each of the two then upgrades, and at last uninstalls, what the other one installed. Where the objects of both are known,
// duplicate-object reports them one by one.
func (r *run) checkReleaseNames() (out diag.Findings) {
	first := map[helmName]*render.Release{}
	for _, rel := range r.rendered.Releases {
		o := &object{Object: rel.Object, document: r.tree.documentAt(rel.Object.Source.File, rel.Object.Source.Line)}
		var content map[string]any
		if kjson.Unmarshal(o.JSON, &content) != nil {
			continue
		}
		spec := mapping.Fields(content).In("spec")
		if suspended, _ := spec["suspend"].(bool); suspended || rel.ReleaseName == "" {
			continue
		}
		name := helmName{
			kubeConfig: spec.Text("kubeConfig", "secretRef", "name") + spec.Text("kubeConfig", "configMapRef", "name"),
			storage:    cmp.Or(spec.Text("storageNamespace"), o.Namespace), named: rel.ReleaseName,
		}
		if name.kubeConfig != "" { // the Secret is in the namespace of the HelmRelease
			name.kubeConfig = o.Namespace + "/" + name.kubeConfig
		}
		other := firstOf(first, rel, name, o.places(), cmp.Or(spec.Text("chart", "spec", "chart"), spec.Text("chartRef", "name")))
		if other == nil || other.Rendered && rel.Rendered {
			continue
		}
		field := "metadata.name"
		if spec.Text("releaseName") != "" {
			field = "spec.releaseName"
		}
		out = append(out, o.at(field, RuleConflict,
			fmt.Sprintf("the release %.60s in namespace %.63s is also that of %s, in %s, line %d: each overwrites what the other installs",
				rel.ReleaseName, rel.ReleaseNamespace, other.Object.ID(), other.Object.Source.File, other.Object.Source.Line),
			"give one of the two another releaseName"))
	}
	return out
}

// firstOf returns the first HelmRelease of a name in one of its places, or nil if rel is the first. It remembers rel in the other places.
func firstOf(first map[helmName]*render.Release, rel *render.Release, name helmName, places []place, chart string) (found *render.Release) {
	for _, p := range places {
		stored, made := name, name
		stored.place, made.place = p, p
		made.storage, made.chart, made.target = "", chart, rel.ReleaseNamespace
		for _, key := range []helmName{stored, made} {
			switch other := first[key]; {
			case other == nil:
				first[key] = rel
			case found == nil && (other.Object.Namespace != rel.Object.Namespace || other.Object.Name != rel.Object.Name):
				found = other
			}
		}
	}
	return found
}
