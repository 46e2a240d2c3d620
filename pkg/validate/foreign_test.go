package validate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/roots"
)

// ofRule are the findings of a rule, with their severities.
func ofRule(all diag.Findings, rule string) (out diag.Findings) {
	for _, f := range all {
		if f.Rule == rule {
			out = append(out, f)
		}
	}
	return out
}

// hasObject tells whether Flux would apply an object.
func hasObject(t *testing.T, files map[string]string, kind, name string) bool {
	t.Helper()
	dir := write(t, files)
	disk, err := render.Dir(dir)
	if err != nil {
		t.Fatal(err)
	}
	assumed, err := roots.Assume(disk, dir)
	if err != nil {
		t.Fatal(err)
	}
	result, err := render.New(disk, assumed, render.Options{}).All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range result.Objects {
		if o.Kind == kind && o.Name == name {
			return true
		}
	}
	return false
}

func kustomizationOf(name, path, source string) string {
	return fmt.Sprintf(`---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %s, namespace: flux-system}
spec: {interval: 10m, prune: true, path: %s, sourceRef: %s}
`, name, path, source)
}

// What kustomize would fetch is left out with a warning, never fetched, and the rest of the folder is built.
func TestRemoteResourcesOfForeignRepos(t *testing.T) {
	files := rawRepo()
	files["infra/kustomization.yaml"] = "resources:\n- https://127.0.0.1:1/components.yaml\n- app\n"
	files["infra/app/kustomization.yaml"] = "resources: [\"git@example.com:acme/base\", cm.yaml]\n"
	files["infra/app/cm.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: here, namespace: default}\n"
	found := ofRule(validate(t, files, knownKinds(t)).Findings, RuleKustomize)
	if len(found) != 2 {
		t.Fatalf("%d findings: %v", len(found), found)
	}
	for _, f := range found {
		if f.Severity != diag.SeverityWarning || f.Line == 0 || !strings.Contains(f.Summary, "not checked") {
			t.Errorf("%s: %s", f.Severity, f)
		}
	}
	if !hasObject(t, files, "ConfigMap", "here") {
		t.Error("the rest of the folder is not built")
	}
	files["infra/kustomization.yaml"] += "patches:\n- patch: |\n    apiVersion: v1\n    kind: ConfigMap\n" +
		"    metadata: {name: theirs, namespace: x}\n"
	for _, f := range validate(t, files, knownKinds(t)).Findings {
		if f.Severity == diag.SeverityError && f.Rule == RuleKustomize {
			t.Errorf("a patch for what is left out is an error: %s", f)
		}
	}
}

// In a fleet of fleetctl's layout it stays an error.
func TestRemoteResourcesOfFleets(t *testing.T) {
	files := fleet(t)
	files[platform+"kustomization.yaml"] = "resources: [\"https://127.0.0.1:1/components.yaml\"]\n"
	for _, f := range ofRule(validate(t, files, knownKinds(t)).Findings, RuleKustomize) {
		if f.Severity == diag.SeverityError {
			return
		}
	}
	t.Error("no error")
}

// A folder that is not there, of a source that may be another repository, is not said to be missing.
func TestFoldersOfOtherRepos(t *testing.T) {
	const source = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: team, namespace: flux-system}\n" +
		"spec: {interval: 1m, url: \"https://git.example.com/acme/team\"}\n"
	files := rawRepo()
	delete(files, "clusters/mgmt/flux-system/gotk-sync.yaml")
	delete(files, "clusters/mgmt/flux-system/kustomization.yaml")
	files["clusters/mgmt/team.yaml"] = source + kustomizationOf("team", "./deploy", "{kind: GitRepository, name: team}")
	result := validate(t, files, knownKinds(t))
	if found := ofRule(result.Findings, RuleMissingPath); len(found) > 0 {
		t.Error(found)
	}
	if found := ofRule(result.Findings, RuleForeign); len(found) != 1 || !strings.Contains(found[0].Summary, "another repository") {
		t.Error(found)
	}
	files["clusters/mgmt/team.yaml"] = source + kustomizationOf("own", "./infar", "{kind: GitRepository, name: flux-system}")
	if found := ofRule(validate(t, files, knownKinds(t)).Findings, RuleMissingPath); len(found) != 1 {
		t.Errorf("a folder that is misspelt is not found: %v", found)
	}
}

// What ArtifactGenerators make of the repo is followed, wherever the generator stands.
func TestArtifacts(t *testing.T) {
	const generator = `apiVersion: source.extensions.fluxcd.io/v1beta1
kind: ArtifactGenerator
metadata: {name: split, namespace: flux-system}
spec:
  sources: [{alias: repo, kind: GitRepository, name: flux-system}]
  artifacts:
  - name: app
    copy:
    - {from: "@repo/apps/base/**", to: "@artifact/base/"}
    - {from: "@repo/apps/production/**", to: "@artifact/overlays/production/"}
`
	for name, generated := range map[string]string{"before": "clusters/mgmt/a.yaml", "behind": "infra/generator.yaml"} {
		t.Run(name, func(t *testing.T) {
			files := rawRepo()
			files[generated] = generator
			files["clusters/mgmt/app.yaml"] = kustomizationOf("app", "./overlays/production", "{kind: ExternalArtifact, name: app}")
			files["apps/base/kustomization.yaml"] = "resources: [cm.yaml]\n"
			files["apps/base/cm.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: here, namespace: default}\ndat: {}\n"
			files["apps/production/kustomization.yaml"] = "resources: [../base]\n"
			findings := validate(t, files, knownKinds(t)).Findings
			if found := ofRule(findings, RuleForeign); len(found) > 0 {
				t.Error(found)
			}
			if found := ofRule(findings, RuleUnknownField); len(found) != 1 || found[0].File != "apps/base/cm.yaml" {
				t.Errorf("the mistake in the artifact is not found: %v", found)
			}
		})
	}
	files := rawRepo()
	files["clusters/mgmt/app.yaml"] = generator + kustomizationOf("app", "./elsewhere", "{kind: ExternalArtifact, name: app}")
	if found := ofRule(validate(t, files, knownKinds(t)).Findings, RuleForeign); len(found) != 1 {
		t.Errorf("what nobody copies: %v", found)
	}
}

// Flux may follow an artifact that is made of a folder of the repo: its paths begin there.
func TestArtifactOfFolder(t *testing.T) {
	files := map[string]string{
		"k8s/clusters/a/ks.yaml": strings.TrimPrefix(kustomizationOf("apps", "./apps", "{kind: OCIRepository, name: flux-system}"), "---\n"),
		"k8s/apps/cm.yaml":       "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: here, namespace: default}\n",
		"bootstrap/flux.yaml": "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\n" +
			"spec: {sync: {kind: OCIRepository, url: \"oci://ghcr.io/acme/k8s\", ref: latest, path: clusters/a}}\n",
	}
	for _, f := range validate(t, files, knownKinds(t)).Findings {
		t.Errorf("%s [%s]", f, f.Rule)
	}
	if !hasObject(t, files, "ConfigMap", "here") {
		t.Error("what the path means in the artifact is not applied")
	}
}

// Ninety releases of charts from elsewhere, and a dozen kinds that nobody knows, are a finding each, that says what is not checked.
func TestSaidOnce(t *testing.T) {
	files := rawRepo()
	var b strings.Builder
	b.WriteString("apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts, namespace: default}\n" +
		"spec: {interval: 1h, url: \"https://charts.example.com\"}\n")
	for i := range 9 {
		fmt.Fprintf(&b, `---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: app-%[1]d, namespace: default}
spec: {interval: 1h, chart: {spec: {chart: app, sourceRef: {kind: HelmRepository, name: charts}}}}
---
apiVersion: example.org/v1
kind: Thing%[1]d
metadata: {name: a, namespace: default}
---
apiVersion: example.org/v1
kind: Thing%[1]d
metadata: {name: b, namespace: default}
`, i)
	}
	files["infra/apps.yaml"] = b.String()
	findings := validate(t, files, knownKinds(t)).Findings
	for rule, says := range map[string]string{
		RuleForeign: "(9, this is the first)", RuleUnknownKind: "example.org/v1 Thing7, example.org/v1 Thing8, ",
	} {
		if found := ofRule(findings, rule); len(found) != 1 || !strings.Contains(found[0].Summary, says) || found[0].Hint == "" {
			t.Errorf("%s: %v", rule, found)
		}
	}
}

// What may well be meant is no error in a repo that fleetctl has not laid out.
func TestDoubtsInForeignRepos(t *testing.T) {
	files := rawRepo()
	files["infra/kustomization.yaml"] = "resources: [namespaced.yaml]\n"
	files["infra/aside.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: aside, namespace: default}\n"
	files["infra/namespaced.yaml"] = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader, namespace: default}
rules: []
---
apiVersion: v1
kind: Secret
metadata: {name: tunnel-secret, namespace: flux-system}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: flux-system}
spec: {interval: 1h, url: "https://charts.example.com", secretRef: {name: tunnel-id-secret}}
`
	findings := validate(t, files, knownKinds(t)).Findings
	for rule, file := range map[string]string{
		RuleNotApplied: "infra/aside.yaml", RuleMetadata: "infra/namespaced.yaml", RuleMissingSecret: "infra/namespaced.yaml",
	} {
		found := false
		for _, f := range ofRule(findings, rule) {
			found = found || f.File == file
			if f.Severity != diag.SeverityWarning {
				t.Errorf("%s: %s", f.Severity, f)
			}
		}
		if !found {
			t.Errorf("nothing is said of %s: %v", rule, findings)
		}
	}
}

// Keys and certificates that everybody may see are no secrets; a private key beside one is.
func TestPublicKeysAreNoSecrets(t *testing.T) {
	const certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	for text, public := range map[string]bool{
		certificate: true, certificate + certificate: true, certificate + "x": false,
		"-----BEGIN PGP PUBLIC KEY BLOCK-----\nComment: a\n\nAAAA\n=AB\n-----END PGP PUBLIC KEY BLOCK-----": true,
		"-----BEGIN RSA PUBLIC KEY-----\r\nAAAA\r\n-----END RSA PUBLIC KEY-----":                            true,
		certificate + "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----":                        false,
		"-----BEGIN CERTIFICATE-----\nhunter2":                                                              false,
		"op://Automation/1password connect/token":                                                           true,
	} {
		if isReference(text) != public {
			t.Errorf("%q: %t", text, !public)
		}
	}
}

// A path of another Git repository is not looked for beside the folder of the cluster, where one may have its name.
func TestPathsOfGitRepositories(t *testing.T) {
	files := rawRepo()
	files["clusters/team/cm.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: here, namespace: default}\n"
	files["infra/team.yaml"] = kustomizationOf("team", "./team", "{kind: GitRepository, name: team}")
	if hasObject(t, files, "ConfigMap", "here") {
		t.Error("it is applied")
	}
	files["infra/team.yaml"] = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n" +
		"metadata: {name: team, namespace: flux-system}\nspec: {interval: 10m, prune: true, sourceRef: {kind: GitRepository, name: team}}\n"
	if hasObject(t, files, "ConfigMap", "here") {
		t.Error("all of this repo is applied for a Kustomization of another one that names no path")
	}
}

// What is missing on several management clusters is said once of a line.
func TestMissingOnSeveral(t *testing.T) {
	files := rawRepo()
	for _, name := range []string{"flux-system/gotk-sync.yaml", "flux-system/kustomization.yaml", "infra.yaml"} {
		files["clusters/second/"+name] = strings.ReplaceAll(files["clusters/mgmt/"+name], "clusters/mgmt", "clusters/second")
	}
	files["infra/repository.yaml"] = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\n" +
		"metadata: {name: a, namespace: default}\n" +
		"spec: {interval: 1h, url: \"https://charts.example.com\", secretRef: {name: nobody-makes-it}}\n"
	found := ofRule(validate(t, files, knownKinds(t)).Findings, RuleMissingSecret)
	n := 0
	for _, f := range found {
		if f.File != "infra/repository.yaml" {
			continue
		}
		if n++; !strings.HasSuffix(f.Summary, "on the management clusters mgmt and second") {
			t.Error(f)
		}
	}
	if n != 1 {
		t.Errorf("%d findings: %v", n, found)
	}
}

// A namespace that somebody else may make is doubted once, not for each object in it.
func TestNamespaceDoubtedOnce(t *testing.T) {
	files := rawRepo()
	for _, name := range []string{"a", "b", "c"} {
		files["infra/"+name+".yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: elsewhere}\n"
	}
	var found diag.Findings
	for _, f := range ofRule(validate(t, files, knownKinds(t)).Findings, RuleMissingNS) {
		if strings.Contains(f.Summary, "elsewhere") {
			found = append(found, f)
		}
	}
	if len(found) != 1 || found[0].File != "infra/a.yaml" || !strings.Contains(found[0].Hint, "all objects in it (3)") {
		t.Error(found)
	}
}

// Flux Operator names the source and the Kustomization of a FluxInstance after its namespace.
func TestFluxInstanceInAnotherNamespace(t *testing.T) {
	files := rawRepo()
	files["infra/flux.yaml"] = `apiVersion: v1
kind: Namespace
metadata: {name: operated}
---
apiVersion: fluxcd.controlplane.io/v1
kind: FluxInstance
metadata: {name: flux, namespace: operated}
spec: {sync: {kind: GitRepository, url: "https://git.example.com/acme/infra.git", ref: refs/heads/main, path: clusters/mgmt}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: more, namespace: operated}
spec:
  interval: 10m
  prune: true
  path: ./more
  dependsOn: [{name: operated}]
  sourceRef: {kind: GitRepository, name: operated}
`
	files["more/cm.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more, namespace: default}\n"
	for _, f := range validate(t, files, knownKinds(t)).Findings {
		if f.Rule == RuleMissingSource || f.Rule == RuleMissingDepends {
			t.Errorf("%s [%s]", f, f.Rule)
		}
	}
}
