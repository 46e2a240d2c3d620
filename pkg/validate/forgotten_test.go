package validate

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// A manifest that the kustomization.yaml of its folder forgets is found in a base and below a path without a kustomization.yaml, and what
// lies there for another reason is not.
func TestForgottenFiles(t *testing.T) {
	const (
		one   = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: default}\n"
		cm    = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: default}\n"
		own   = "{kind: GitRepository, name: flux-system}"
		media = "./kubernetes/apps/media/"
	)
	files := map[string]string{
		"clusters/production/flux-system/gotk-sync.yaml": `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m, ref: {branch: main}, url: "https://git.example.com/acme/infra.git"}
` + kustomizationOf("flux-system", "./clusters/production", own),
		"clusters/production/apps.yaml": kustomizationOf("apps", "./apps/production", own) +
			kustomizationOf("home", "./kubernetes/apps", own),
		// flux2-kustomize-helm-example
		"apps/production/kustomization.yaml": "resources: [../base/podinfo]\npatches: [{path: patch.yaml}]\ncomponents: [../components/a]\n",
		"apps/production/patch.yaml":         "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: default}\ndata: {a: b}\n",
		"apps/staging/kustomization.yaml":    "resources: [../base/podinfo, ../base/podinfo/staging-only.yaml]\n", // which no cluster has
		"apps/base/podinfo/kustomization.yaml": "resources:\n- one.yaml\n# - disabled.yaml\n#- ./folder\nconfigMapGenerator:\n- name: b\n" +
			"  namespace: default\n  files: [config.yaml]\ncrds: [crd.yaml]\n",
		"apps/base/podinfo/one.yaml":             one,
		"apps/base/podinfo/extra.yaml":           cm, // forgotten
		"apps/base/podinfo/in/a/folder.yaml":     cm, // forgotten
		"apps/base/podinfo/disabled.yaml":        cm,
		"apps/base/podinfo/folder/disabled.yaml": cm,
		"apps/base/podinfo/staging-only.yaml":    cm,
		"apps/base/podinfo/config.yaml":          cm,
		"apps/base/podinfo/crd.yaml":             "{}\n",
		"apps/base/podinfo/values.yaml":          "kind: DaemonSet\nreplicas: 1\n",
		"apps/base/podinfo/tests/pod.yaml":       cm,
		"apps/base/podinfo/cm.example.yaml":      cm,
		"apps/base/podinfo/hidden.yaml":          cm,
		"apps/base/podinfo/README.md":            "# hello\n",
		"apps/base/podinfo/scripted.yaml":        cm,
		"Makefile":                               "apply:\n\tkubectl apply -f apps/base/podinfo/scripted.yaml\n",
		"apps/base/podinfo/chart/Chart.yaml":     "apiVersion: v2\nname: a\nversion: 1.0.0\n",
		"apps/base/podinfo/chart/crds/a.yaml":    cm,
		"apps/base/other/kustomization.yaml":     "resources: [a.yaml]\n", // which nothing builds
		"apps/base/other/a.yaml":                 cm,
		"apps/base/other/b.yaml":                 cm,
		"apps/components/a/kustomization.yaml":   "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [a.yaml]\n",
		"apps/components/a/a.yaml":               strings.ReplaceAll(one, "one", "two"),
		"apps/components/a/b.yaml":               cm, // forgotten
		".sourceignore":                          "hidden.yaml\n",
		// home-ops
		"kubernetes/apps/media/kustomization.yaml":              "resources: [./jellyfin/ks.yaml]\n",
		"kubernetes/apps/media/jellyfin/ks.yaml":                kustomizationOf("jellyfin", media+"jellyfin/app", own),
		"kubernetes/apps/media/jellyfin/app/kustomization.yaml": "resources: [a.yaml]\n",
		"kubernetes/apps/media/jellyfin/app/a.yaml":             strings.ReplaceAll(one, "one", "three"),
		"kubernetes/apps/media/plex/ks.yaml":                    kustomizationOf("plex", media+"plex/app", own), // forgotten
		"kubernetes/apps/media/plex/app/kustomization.yaml":     "resources: [a.yaml]\n",
		"kubernetes/apps/media/plex/app/a.yaml":                 cm,
		// other things of a monorepo
		"ansible/roles/x/templates/a.yaml": cm, "terraform/files/b.yaml": cm, "charts/web/ci/values.yaml": cm,
		"charts/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
	}
	var got []string
	for _, f := range ofRule(validate(t, files, knownKinds(t)).Findings, RuleNotApplied) {
		got = append(got, f.File)
		if f.Severity != diag.SeverityWarning {
			t.Errorf("%s: %s", f.Severity, f)
		}
	}
	want := []string{
		"apps/base/podinfo/extra.yaml", "apps/base/podinfo/in/a/folder.yaml", "apps/components/a/b.yaml", "kubernetes/apps/media/plex/ks.yaml",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	// A folder that does not build may use any of its files.
	broken := maps.Clone(files)
	broken["apps/base/podinfo/kustomization.yaml"] += "patches: [{path: gone.yaml}]\n"
	for _, f := range ofRule(validate(t, broken, knownKinds(t)).Findings, RuleNotApplied) {
		if f.File == "apps/base/podinfo/extra.yaml" {
			t.Errorf("in a folder that does not build: %s", f)
		}
	}
}
