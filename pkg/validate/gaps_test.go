package validate

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// wants is a source that refers to a Secret.
func wants(name, secret string) string {
	return "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: " + name + ", namespace: default}\n" +
		"spec: {interval: 1h, url: \"https://charts.example.com\", secretRef: {name: " + secret + "}}\n"
}

// unlessBroken is a Secret that Flux decrypts.
func unlessBroken(name string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", namespace: default}\nstringData: {a: " +
		"'ENC[AES256_GCM,data:Zm9v,iv:YmFy,tag:YmF6,type:str]'}\nsops: {lastmodified: \"2026-01-01T00:00:00Z\"}\n"
}

// fault ends a document that cannot be read.
const fault = "a: [\n"

// expect fails the test unless the findings are one for each rule and file that is wanted, "rule file", and no other.
func expect(t *testing.T, findings diag.Findings, wanted ...string) {
	t.Helper()
	var got []string
	for _, f := range findings {
		if f.File != "fleet.yaml" { // which names no provider where the test is about manifests alone
			got = append(got, f.Rule+" "+f.File)
		}
	}
	slices.Sort(got)
	slices.Sort(wanted)
	if !slices.Equal(got, wanted) {
		t.Errorf("got %q, want %q", got, wanted)
		for _, f := range findings {
			t.Logf("%s: %s [%s] (%s)", f.Severity, f, f.Rule, f.Hint)
		}
	}
}

// What cannot be read is one finding, and everything else is judged: only what may be in it is not missing.
func TestJudgedBesideUnread(t *testing.T) {
	const kustomization = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [broken.yaml, app.yaml, own.yaml]\n"
	own := wants("own", "db")
	patch := "patches:\n- target: {kind: HelmRepository, name: app}\n" +
		"  patch: '[{\"op\": \"replace\", \"path\": \"/spec/interval\", \"value\": \"2h\"}]'\n"
	for name, tt := range map[string]struct {
		files  map[string]string
		wanted []string
	}{
		"files alone": {map[string]string{
			"infra/dev/broken.yaml": unlessBroken("db") + fault, "infra/dev/app.yaml": wants("app", "nowhere"), "infra/dev/own.yaml": own,
			"infra/prod/app.yaml": wants("prod", "nowhere-else"),
		}, []string{"syntax infra/dev/broken.yaml", "missing-secret infra/dev/app.yaml", "missing-secret infra/prod/app.yaml"}},
		"another document of the file": {map[string]string{
			"infra/dev/broken.yaml": unlessBroken("db") + fault + "---\n" + wants("app", "nowhere"), "infra/dev/own.yaml": own,
		}, []string{"syntax infra/dev/broken.yaml", "missing-secret infra/dev/broken.yaml"}},
		"a kustomization": {map[string]string{
			"infra/dev/kustomization.yaml": kustomization,
			"infra/dev/broken.yaml":        unlessBroken("db") + fault, "infra/dev/app.yaml": wants("app", "nowhere"), "infra/dev/own.yaml": own,
			"infra/prod/app.yaml": wants("prod", "nowhere-else"),
		}, []string{"syntax infra/dev/broken.yaml", "missing-secret infra/dev/app.yaml", "missing-secret infra/prod/app.yaml"}},
		"a kustomization with patches": {map[string]string{
			"infra/dev/kustomization.yaml": kustomization + patch,
			"infra/dev/broken.yaml":        unlessBroken("db") + fault, "infra/dev/app.yaml": wants("app", "nowhere"), "infra/dev/own.yaml": own,
			"infra/prod/app.yaml": wants("prod", "nowhere-else"),
		}, []string{"syntax infra/dev/broken.yaml", "missing-secret infra/dev/app.yaml", "missing-secret infra/prod/app.yaml"}},
		"a kustomization with a namespace": {map[string]string{
			"infra/dev/kustomization.yaml": kustomization + "namespace: default\n",
			"infra/dev/broken.yaml":        unlessBroken("db") + fault, "infra/dev/app.yaml": wants("app", "nowhere"), "infra/dev/own.yaml": own,
			"infra/prod/app.yaml": wants("prod", "nowhere-else"),
		}, []string{"syntax infra/dev/broken.yaml", "missing-secret infra/dev/app.yaml", "missing-secret infra/prod/app.yaml"}},
		"a prefix of names": {map[string]string{
			"infra/dev/kustomization.yaml": "namePrefix: dev-\nresources: [broken.yaml]\n",
			"infra/dev/broken.yaml":        unlessBroken("db") + fault,
			"infra/app.yaml":               wants("app", "dev-db"), "infra/other.yaml": wants("other", "nowhere"),
		}, []string{"syntax infra/dev/broken.yaml", "missing-secret infra/other.yaml"}},
		"the kustomization itself": {map[string]string{
			"infra/dev/kustomization.yaml": "resources: [secret.yaml\n", "infra/dev/secret.yaml": unlessBroken("db"),
			"infra/own.yaml": own, "infra/app.yaml": wants("app", "nowhere"),
		}, []string{"syntax infra/dev/kustomization.yaml", "missing-secret infra/app.yaml"}},
		"a folder that does not build": {map[string]string{
			"infra/dev/kustomization.yaml": "resources: [secret.yaml]\n" +
				"patches: [{patch: '{apiVersion: v1, kind: Secret, metadata: {name: none}}'}]\n",
			"infra/dev/secret.yaml": unlessBroken("db"), "infra/own.yaml": own, "infra/app.yaml": wants("app", "nowhere"),
		}, []string{"kustomize-build infra/dev/kustomization.yaml", "missing-secret infra/app.yaml"}},
		"a resource that is not there": {map[string]string{
			"infra/dev/kustomization.yaml": "resources: [../../base/secrte.yaml]\n",
			"base/secret.yaml":             unlessBroken("db"), "infra/own.yaml": own, "infra/app.yaml": wants("app", "nowhere"),
		}, []string{"missing-path infra/dev/kustomization.yaml", "missing-secret infra/app.yaml"}},
		"a Flux Kustomization": {map[string]string{
			"infra/dev.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: dev, namespace: flux-system}\n" +
				"spec: {interval: 1m, prune: true, path: ./dev, sourceRef: {kind: GitRepository, name: flux-system}}\n" + fault,
			"dev/secret.yaml": unlessBroken("db"), "infra/own.yaml": own, "infra/app.yaml": wants("app", "nowhere"),
		}, []string{"syntax infra/dev.yaml", "missing-secret infra/app.yaml"}},
		"an object of which another one is made": {map[string]string{
			"infra/dev.yaml": "apiVersion: example.com/v1\nkind: Database\nmetadata: {name: dev, namespace: default}\n" + fault,
			"infra/own.yaml": own, "infra/app.yaml": strings.ReplaceAll(wants("app", "nowhere"), "default", "flux-system"),
		}, []string{"syntax infra/dev.yaml", "missing-secret infra/app.yaml"}},
		"pods that a Service selects": {map[string]string{
			"infra/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: app}\n",
			"infra/dev.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: app}\nspec:\n" +
				"  template: {metadata: {labels: {app: web}}}\n" + fault,
			"infra/service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: app}\nspec: {selector: {app: web}, ports: " +
				"[{port: 80}]}\n",
			"infra/other.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: other, namespace: app}\nspec: {selector: {app: other}, " +
				"ports: [{port: 80}]}\n",
		}, []string{"syntax infra/dev.yaml", "idle-selector infra/other.yaml"}},
		"two objects of one name": {map[string]string{
			"infra/a.yaml": aConfigMap, "infra/b.yaml": aConfigMap, "infra/app.yaml": wants("app", "nowhere"),
		}, []string{"duplicate infra/b.yaml", "missing-secret infra/app.yaml"}},
		"a file that is no text": {map[string]string{
			"infra/dev.yaml": "\xff\xfe" + unlessBroken("db"), "infra/own.yaml": own,
		}, []string{"syntax infra/dev.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := infra("    crds: []\n", maps.Clone(tt.files))
			expect(t, validate(t, files, knownKinds(t)).Findings, tt.wanted...)
		})
	}
}

// What cannot be read on one management cluster is not on another.
func TestUnreadIsOfItsCluster(t *testing.T) {
	files := infra("    crds: []\n", map[string]string{
		"infra/broken.yaml": unlessBroken("db") + fault, "infra/own.yaml": wants("own", "db"), "other/own.yaml": wants("own", "db"),
	})
	files["fleet.yaml"] = strings.Replace(files["fleet.yaml"], "  validate:\n",
		"  - {name: other, path: other, cloud: other, host: {type: kind}, kubernetesVersion: v1.36.3}\n  validate:\n", 1)
	expect(t, validate(t, files, knownKinds(t)).Findings, "syntax infra/broken.yaml", "missing-secret other/own.yaml")
}

// In fleetctl's layout, the rest of the environment and the other environments are judged beside a broken file, by all rules.
func TestJudgedBesideBrokenFile(t *testing.T) {
	files := fleet(t)
	files[clusters+"staging/one/broken.yaml"] = unlessBroken("db") + fault
	files[clusters+"staging/one/app.yaml"] = wants("app", "nowhere") + "---\n" + wants("own", "db")
	files[clusters+"production/two/app.yaml"] = wants("two", "nowhere-else")
	files["providers/docker/v1/stray.yaml"] = aConfigMap
	files[platform+"chart.yaml"] = `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: lost, namespace: platform}
spec:
  interval: 1m
  chart: {spec: {chart: ./charts/none, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}
`
	files[platform+"broken.yaml"] = "apiVersion: v1\nkind: ConfigMap\n" + fault
	expect(t, validate(t, files, knownKinds(t)).Findings, "syntax "+clusters+"staging/one/broken.yaml", "syntax "+platform+"broken.yaml",
		"missing-secret "+clusters+"staging/one/app.yaml", "missing-secret "+clusters+"production/two/app.yaml",
		"not-applied providers/docker/v1/stray.yaml", "helm-render "+platform+"chart.yaml")
}

// A broken cluster is one finding: what its chart would make is not missing, and its files are not idle.
func TestBrokenCluster(t *testing.T) {
	for name, breaks := range map[string]func(files map[string]string){
		"its declaration":      func(files map[string]string) { files[one] += fault },
		"the chart of all":     func(files map[string]string) { files["charts/in-memory/values.yaml"] += fault },
		"its environment":      func(files map[string]string) { files[mgmt+"clusters-staging.yaml"] += fault },
		"a feature's manifest": func(files map[string]string) { files[web] += fault },
		"a feature's folder":   func(files map[string]string) { files["features/web/namespaced/kustomization.yaml"] += fault },
		"the apps":             func(files map[string]string) { files[apps] += fault },
		"the sync of the cluster itself": func(files map[string]string) {
			files[mgmt+"flux-system/gotk-sync.yaml"] += fault
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := fleet(t)
			breaks(files)
			for _, f := range validate(t, files, knownKinds(t)).Findings {
				if f.Rule != RuleSyntax && f.Rule != RuleHelm {
					t.Errorf("%s: %s [%s] (%s)", f.Severity, f, f.Rule, f.Hint)
				}
			}
		})
	}
}

// The other files of an add-on are judged beside a broken one.
func TestAddonBesideBrokenFile(t *testing.T) {
	const dir = "addons/cni/plain"
	findings, err := Addon(t.Context(), dir, []manifest.File{
		{Path: dir + "/broken.yaml", Content: []byte(unlessBroken("db") + fault)},
		{Path: dir + "/config.yaml", Content: []byte(aConfigMap + "dada: {}\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, findings, "syntax "+dir+"/broken.yaml", "unknown-field "+dir+"/config.yaml")
}
