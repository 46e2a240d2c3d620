package validate

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// infra is a fleet whose management cluster applies the folder infra, and leaves out what settings say.
func infra(settings string, files map[string]string) map[string]string {
	files["fleet.yaml"] = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  git: {url: https://git.example.com/acme/fleet.git}
  environments: [{name: staging}]
  managementClusters:
  - {name: mgmt, path: infra, host: {type: kind}, kubernetesVersion: v1.36.3}
  validate:
` + settings
	return files
}

const aConfigMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n"

// What keeps a folder from being built is told, left out or not: the rest of the folder is not checked either.
func TestExcludeHidesNoFolder(t *testing.T) {
	for name, tt := range map[string]struct {
		files      map[string]string
		file, rule string
	}{
		"all that is applied": {
			infra("    exclude: [infra]\n", map[string]string{"infra/broken.yaml": "a: [\n", "infra/a.yaml": aConfigMap}),
			"infra/broken.yaml", RuleSyntax,
		},
		"no object": {
			infra("    exclude: [infra]\n", map[string]string{"infra/broken.yaml": "- a\n"}),
			"infra/broken.yaml", RuleSyntax,
		},
		"a bomb": {infra("    exclude: [infra]\n", map[string]string{"infra/bomb.yaml": bomb()}), "infra/bomb.yaml", RuleLimit},
		"resource that is not there": {
			infra("    exclude: [infra]\n", map[string]string{"infra/kustomization.yaml": "resources: [nothing.yaml]\n"}),
			"infra/kustomization.yaml", RuleMissingPath,
		},
		"unknown field": {
			infra("    exclude: [infra]\n", map[string]string{"infra/kustomization.yaml": "resource: [a.yaml]\n", "infra/a.yaml": aConfigMap}),
			"infra/kustomization.yaml", RuleUnknownField,
		},
		"the same twice": {
			infra("    exclude: [infra]\n", map[string]string{
				"infra/kustomization.yaml": "resources: [a.yaml, b.yaml]\n",
				"infra/a.yaml":             aConfigMap, "infra/b.yaml": aConfigMap,
			}),
			"infra/b.yaml", RuleDuplicate,
		},
		"one of its files": {
			infra("    exclude: [infra/broken.yaml]\n", map[string]string{"infra/broken.yaml": "a: [\n", "infra/a.yaml": aConfigMap + "dada: {}\n"}),
			"infra/broken.yaml", RuleSyntax,
		},
	} {
		t.Run(name, func(t *testing.T) {
			found, others := false, 0
			result := validate(t, tt.files, knownKinds(t))
			for _, f := range result.Findings {
				switch {
				case f.File == tt.file && f.Rule == tt.rule && f.Severity == diag.SeverityError:
					found = true
				case f.File == "infra/a.yaml": // which may be checked
				case strings.HasPrefix(f.File, "infra/"):
					others++
				}
			}
			if !found || others > 0 || result.Errors == 0 {
				t.Errorf("%s [%s] is not told, or more than it: %v", tt.file, tt.rule, result.Findings)
			}
		})
	}
}

// A comment with a reason still ignores the fault for which a folder cannot be built, in excluded files as elsewhere. An unused comment in
// an excluded file is not reported.
func TestIgnoreInWhatIsExcluded(t *testing.T) {
	files := withSettings(t, "    exclude: [features/web]\n")
	files["features/web/namespaced/kustomization.yaml"] = "resources:\n" +
		"- https://example.com/base?ref=v1 # fleetctl:ignore kustomize-build it is ours\n"
	files[web] += "# fleetctl:ignore kustomize-build it is not\n"
	report(t, validate(t, files, knownKinds(t)).Findings)
	files["features/web/namespaced/kustomization.yaml"] = "resources:\n- https://example.com/base?ref=v1\n"
	only(t, validate(t, files, knownKinds(t)).Findings, RuleKustomize)
}

// It is reported that nothing is checked, even if the reason is ignored.
func TestNothingIsChecked(t *testing.T) {
	for name, tt := range map[string]struct{ files map[string]string }{
		"a comment": {infra("    # fleetctl:ignore nothing-applied we like it so\n    exclude: [infra]\n",
			map[string]string{"infra/a.yaml": aConfigMap})},
		"a comment at what cannot be built": {
			infra("    crds: []\n", map[string]string{"infra/kustomization.yaml": "resources:\n- nothing.yaml # fleetctl:ignore missing-path " +
				"later\n", "infra/a.yaml": aConfigMap}),
		},
		"objects that are left out": {infra("    exclude: [apps]\n",
			map[string]string{"infra/README.md": "later\n", "apps/a.yaml": aConfigMap})},
		"objects that cannot be read": {infra("    exclude: [apps]\n",
			map[string]string{"infra/README.md": "later\n", "apps/a.yaml": aConfigMap + "data: [\n"})},
		"objects that nobody left out": {infra("    crds: []\n", map[string]string{"infra/README.md": "later\n", "apps/a.yaml": aConfigMap})},
	} {
		t.Run(name, func(t *testing.T) {
			var found diag.Findings
			for _, f := range validate(t, tt.files, knownKinds(t)).Findings {
				if f.Rule == RuleNothing && f.Severity == diag.SeverityError {
					found = append(found, f)
				}
			}
			if len(found) != 1 {
				t.Errorf("told %d times that nothing is checked: %v", len(found), found)
			}
		})
	}
}

// An object that could not be rendered, which nothing tells of any more, is not checked either.
func TestNothingIsCheckedForAHiddenError(t *testing.T) {
	settings := v1alpha1.Validation{Exclude: []string{"infra"}}
	files, _ := treeOf([]manifest.File{{Path: "infra/a.yaml", Content: []byte(aConfigMap)}})
	r := &run{tree: files, exclusion: settings.Exclusion(), rendered: &render.Result{Findings: diag.Findings{
		{Severity: diag.SeverityError, Rule: render.RuleSubstitute, File: "infra/a.yaml", Line: 1, Summary: "a variable"},
	}}}
	f := only(t, r.leaveOut(&Result{Files: 1}, settings, r.renderFindings(&placement{})), RuleNothing)
	if f.Severity != diag.SeverityError {
		t.Errorf("got %s %s", f.Severity, f)
	}
}

// CRDs are known wherever they stand in the repo. An excluded CRD never replaces another one.
func TestCRDsInWhatIsExcluded(t *testing.T) {
	files := withSettings(t, "    exclude: [hack]\n")
	files["hack/gadgets.yaml"] = gadgets
	files[platform+"gadget.yaml"] = "apiVersion: gadgets.example.com/v1\nkind: Gadget\nmetadata: {name: b, namespace: platform}\nspec: {sise: 1}\n"
	only(t, validate(t, files, knownKinds(t)).Findings, RuleUnknownField)
	files[platform+"gadgets.yaml"] = strings.ReplaceAll(gadgets, "size: {", "sise: {")
	report(t, validate(t, files, knownKinds(t)).Findings)
	files["hack/gadgets.yaml"] = strings.Replace(gadgets, "scope: Namespaced", "scope: [", 1)
	report(t, validate(t, files, knownKinds(t)).Findings)
}

// Which Flux runs there is known from its CRDs, in what is left out as well.
func TestFluxInWhatIsExcluded(t *testing.T) {
	files := infra("    exclude: [hack]\n", map[string]string{
		"infra/release.yaml": "apiVersion: helm.toolkit.fluxcd.io/v2beta1\nkind: HelmRelease\nmetadata: {name: a, namespace: default}\nspec: " +
			"{interval: 1m, chart: {spec: {chart: a, sourceRef: {kind: HelmRepository, name: a}}}}\n",
	})
	severity := func() (out diag.Severity) {
		for _, f := range validate(t, files, knownKinds(t)).Findings {
			if f.Rule == RuleAPIVersion {
				out = f.Severity
			}
		}
		return out
	}
	if got := severity(); got != diag.SeverityWarning {
		t.Fatalf("%q where no CRD of Flux is in the repo", got)
	}
	files["hack/flux.yaml"] = strings.NewReplacer("gadgets.example.com", "image.toolkit.fluxcd.io", "Gadget", "ImagePolicy", "gadgets",
		"imagepolicies").Replace(gadgets)
	if got := severity(); got != diag.SeverityError {
		t.Errorf("%q where they are", got)
	}
}

// What a kustomization.yaml uses as patches is no object, and what a Flux Kustomization names is meant to be applied, left out or not.
func TestNamedInWhatIsExcluded(t *testing.T) {
	files := withSettings(t, "    exclude: [features/web/namespaced/kustomization.yaml]\n")
	files["features/web/namespaced/patch.yaml"] += "  strategy: {$patch: delete}\n"
	report(t, validate(t, files, knownKinds(t)).Findings)

	files = withSettings(t, "    exclude: [hack]\n")
	files["features/web/later/a.yaml"] = strings.Replace(aConfigMap, "default", "platform", 1)
	files["hack/later.yaml"] =
		"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: later, namespace: flux-system}\n" +
			"spec: {interval: 1m, path: ./features/web/later, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}\n"
	report(t, validate(t, files, knownKinds(t)).Findings)
}

// A cluster whose chart's HelmChart is left out is checked as far as it goes.
func TestChartInWhatIsExcluded(t *testing.T) {
	files := withSettings(t, "")
	chart := ""
	for name, content := range files {
		if strings.Contains(content, "kind: HelmChart\n") && strings.Contains(name, "/staging/") {
			chart = name
			files[name] = strings.Replace(content, "./charts/in-memory", "./charts/nothing", 1)
		}
	}
	files["fleet.yaml"] += "    exclude: [" + chart + "]\n"
	if result := validate(t, files, knownKinds(t)); result.Errors == 0 {
		t.Errorf("%s has no chart, and nothing tells: %v", chart, result.Findings)
	}
}
