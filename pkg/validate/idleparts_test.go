package validate

import (
	"strings"
	"testing"
)

const deploymentOf = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: NAME, namespace: default}\nspec:\n" +
	"  selector: {matchLabels: {app: NAME}}\n  template:\n    metadata: {labels: {app: NAME}}\n    spec:\n" +
	"      containers: [{name: NAME, image: \"registry.example.com/acme/NAME:v1\"}]\n"

// componentRepo has two overlays, of which only the second has the Deployment back. Both include a Component, one of them through another.
func componentRepo(component string) map[string]string {
	files := rawRepo()
	files["app/component/kustomization.yaml"] = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n" + component
	files["app/outer/kustomization.yaml"] = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncomponents: [../component]\n"
	for name, component := range map[string]string{"first": "../component", "second": "../outer"} {
		files["clusters/mgmt/"+name+".yaml"] = kustomizationOf(name, "./app/"+name, "{kind: GitRepository, name: flux-system}")[4:]
		files["app/"+name+"/kustomization.yaml"] = "namePrefix: " + name + "-\nresources: [all.yaml]\ncomponents: [" + component + "]\n"
		files["app/"+name+"/all.yaml"] = strings.ReplaceAll(deploymentOf, "NAME", "front")
	}
	files["app/second/all.yaml"] += "---\n" + strings.ReplaceAll(deploymentOf, "NAME", "back")
	return files
}

// A Component looks for the objects of all folders that include it: only what none of them has is reported.
func TestWhatComponentsAimAt(t *testing.T) {
	patch := func(name string) string {
		return "patches:\n- target: {kind: Deployment, name: " + name + "}\n" + twoMore
	}
	for name, c := range map[string]struct{ component, says string }{
		"what both have":    {patch("front"), ""},
		"what one has":      {patch("back"), ""},
		"what none has":     {patch("bakk"), "patches[0] changes nothing: no object is Deployment bakk"},
		"an image of one":   {"images:\n- {name: registry.example.com/acme/back, newTag: v2}\n", ""},
		"an image of none":  {"images:\n- {name: registry.example.com/acme/bakk, newTag: v2}\n", "images[0] changes nothing"},
		"a kind of nothing": {"patches:\n- target: {kind: Deploymnet}\n" + twoMore, "patches[0] changes nothing: no object is Deploymnet"},
	} {
		t.Run(name, func(t *testing.T) {
			found := ofRule(validate(t, componentRepo(c.component), knownKinds(t)).Findings, RulePatch)
			if c.says == "" && len(found) > 0 {
				t.Error(found)
			}
			if c.says != "" && (len(found) != 1 || !strings.Contains(found[0].Summary, c.says) || found[0].Line == 0 ||
				found[0].File != "app/component/kustomization.yaml") {
				t.Error(found)
			}
		})
	}
	files := componentRepo(patch("bakk"))
	files["app/first/kustomization.yaml"] += "patches:\n- patch: |\n    $patch: delete\n    apiVersion: apps/v1\n    kind: Deployment\n" +
		"    metadata: {name: front, namespace: default}\n"
	if found := ofRule(validate(t, files, knownKinds(t)).Findings, RulePatch); len(found) > 0 {
		t.Errorf("what is deleted later may have been there: %v", found)
	}
}

// A Flux Kustomization may include a Component, too, also in a folder without a kustomization.yaml.
func TestWhatComponentsOfFluxAimAt(t *testing.T) {
	for name, wrong := range map[string]bool{"front": false, "frnot": true} {
		files := componentRepo("patches:\n- target: {kind: Deployment, name: " + name + "}\n" + twoMore)
		delete(files, "clusters/mgmt/second.yaml")
		delete(files, "app/first/kustomization.yaml")
		files["clusters/mgmt/first.yaml"] = strings.Replace(files["clusters/mgmt/first.yaml"], "path:", "components: [../component], path:", 1)
		if found := ofRule(validate(t, files, knownKinds(t)).Findings, RulePatch); len(found) > 0 != wrong {
			t.Errorf("%s: %v", name, found)
		}
	}
}

// A kind that is mistyped is no kind of later objects.
func TestMistypedKinds(t *testing.T) {
	for kind, hint := range map[string]string{
		"HelmRelase": "did you mean HelmRelease?", "helmrelease": "did you mean HelmRelease?", "HelmRelease": "", "ScaledObject": "",
		"Deployment|StatefulSet": "", "Job": "",
	} {
		files := aimedFolder("")
		files["clusters/mgmt/app.yaml"] += "  patches:\n  - target: {kind: " + kind + "}\n" +
			strings.ReplaceAll("\n"+twoMore, "\n", "\n  ")[1:] + "\n"
		found := ofRule(validate(t, files, knownKinds(t)).Findings, RulePatch)
		if len(found) > 0 != (hint != "") || hint != "" && found[0].Hint != hint {
			t.Errorf("%s: %v", kind, found)
		}
	}
}

// postRendered is a HelmRelease of a chart in the repo whose post renderer patches what the target is.
func postRendered(target string) string {
	return "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: default}\nspec:\n" +
		"  interval: 1h\n  chart: {spec: {chart: ./charts/web, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}\n" +
		"  postRenderers:\n  - kustomize:\n      patches:\n      - target: " + target + "\n" +
		"        patch: |\n          - {op: add, path: /metadata/labels, value: {a: b}}\n"
}

func postRenderedRepo() map[string]string {
	files := rawRepo()
	files["charts/web/Chart.yaml"] = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
	files["charts/web/values.yaml"] = "more: true\n"
	files["charts/web/templates/all.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n" +
		"{{- if .Values.more }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n{{- end }}\n"
	return files
}

func TestWhatPostRenderersAimAt(t *testing.T) {
	for target, says := range map[string]string{
		"{kind: ConfigMap, name: settings}":                     "",
		"{kind: ConfigMap, name: settings, namespace: default}": "",
		"{kind: ConfigMap, name: setings}":                      "no object of the chart is ConfigMap setings",
		"{kind: ConfigMpa}":                                     "no object of the chart is ConfigMpa",
		"{kind: Deployment}":                                    "",
	} {
		files := postRenderedRepo()
		files["infra/web.yaml"] = postRendered(target)
		found := ofRule(validate(t, files, knownKinds(t)).Findings, RulePatch)
		if says == "" && len(found) > 0 ||
			says != "" && (len(found) != 1 || !strings.Contains(found[0].Summary, says) || found[0].File != "infra/web.yaml") {
			t.Errorf("%s: %v", target, found)
		}
	}
}

// A HelmRelease of a base may have other values in each overlay: what one of the charts makes is not aimed at in vain.
func TestWhatBasesAimAt(t *testing.T) {
	for target, wrong := range map[string]bool{"more": false, "moree": true} {
		files := postRenderedRepo()
		files["app/base/kustomization.yaml"] = "resources: [release.yaml]\n"
		files["app/base/release.yaml"] = postRendered("{kind: ConfigMap, name: " + target + "}")
		for name, more := range map[string]string{"with": "true", "without": "false"} {
			sync := files["clusters/mgmt/flux-system/gotk-sync.yaml"]
			files["clusters/"+name+"/flux-system/gotk-sync.yaml"] = strings.ReplaceAll(sync, "clusters/mgmt", "clusters/"+name)
			files["clusters/"+name+"/app.yaml"] = kustomizationOf("app", "./app/"+name, "{kind: GitRepository, name: flux-system}")[4:]
			files["app/"+name+"/kustomization.yaml"] = "resources: [../base]\npatches:\n- patch: |\n    apiVersion: helm.toolkit.fluxcd.io/v2\n" +
				"    kind: HelmRelease\n    metadata: {name: web, namespace: default}\n    spec: {values: {more: " + more + "}}\n"
		}
		if found := ofRule(validate(t, files, knownKinds(t)).Findings, RulePatch); len(found) > 0 != wrong {
			t.Errorf("%s: %v", target, found)
		}
	}
}
