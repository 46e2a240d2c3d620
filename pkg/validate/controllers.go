package validate

import (
	"fmt"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// controllers are the parts of Flux that a fleet can do without. Each brings the CRDs of its kinds along.
var controllers = map[groupKind]string{
	{"helm.toolkit.fluxcd.io", "HelmRelease"}:            "helm-controller",
	{"notification.toolkit.fluxcd.io", "Alert"}:          "notification-controller",
	{"notification.toolkit.fluxcd.io", "Provider"}:       "notification-controller",
	{"notification.toolkit.fluxcd.io", "Receiver"}:       "notification-controller",
	{"image.toolkit.fluxcd.io", "ImageRepository"}:       "image-reflector-controller",
	{"image.toolkit.fluxcd.io", "ImagePolicy"}:           "image-reflector-controller",
	{"image.toolkit.fluxcd.io", "ImageUpdateAutomation"}: "image-automation-controller",
	{"source.extensions.fluxcd.io", "ArtifactGenerator"}: "source-watcher",
}

// checkControllers reports the objects of Flux that no part of the installed Flux takes, once for each part. Flux applies none of the
// objects that it applies together with them: the API server does not know their kind. A repo with its own layout may install Flux in its
// own way.
func (r *run) checkControllers(s *schemas, all []*object) (out diag.Findings) {
	if r.isForeign() {
		return nil
	}
	installed := r.fleet.Spec.Flux.Components
	advice := "add it to spec.flux.components in " + v1alpha1.FileName
	if len(installed) == 0 {
		installed = v1alpha1.DefaultFluxComponents()
		advice = "list it in spec.flux.components in " + v1alpha1.FileName + ", with all others that you want"
	}
	told := map[string]bool{}
	for _, o := range all {
		gvk := o.gvk()
		name := controllers[groupKind{gvk.Group, gvk.Kind}]
		if name == "" || o.content != nil || told[name] || slices.Contains(installed, name) || s.HasCRD(gvk.Group, gvk.Kind) {
			continue
		}
		told[name] = true
		out = append(out, o.at("kind", RuleController,
			fmt.Sprintf("Flux is installed without %s, which brings this kind: Flux can apply neither it nor what comes with it", name),
			advice+", and run `fleetctl init`"+sayInComment+RuleController+" reason"))
	}
	return out
}
