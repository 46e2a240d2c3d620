package validate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// secretPair is a repo that has one Secret and refers to another one.
func secretPair(has, wants string) map[string]string {
	files := rawRepo()
	files["infra/app.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata: {name: app}\n---\n" + sopsSecret(has, "app", "password") + "---\n" +
		"apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts, namespace: app}\n" +
		"spec: {interval: 1h, url: \"https://charts.example.com\", secretRef: {name: " + wants + "}}\n"
	return files
}

// In a repo with its own layout, only a name that is mistyped is an error: others are of Secrets that something else makes.
func TestSecretsOfOthers(t *testing.T) {
	for _, c := range []struct {
		has, wants string
		severity   diag.Severity
	}{
		{"tenant-a-auth", "tenant-b-auth", diag.SeverityWarning},
		{"db-credentials-dev", "db-credentials-prod", diag.SeverityWarning},
		{"s3-backup-eu", "s3-backup-us", diag.SeverityWarning},
		{"cluster-1", "cluster-2", diag.SeverityWarning},
		{"charts-auth", "chart-auth", diag.SeverityError},
		{"charts-auth", "charts-atuh", diag.SeverityError},
	} {
		found := ofRule(validate(t, secretPair(c.has, c.wants), knownKinds(t)).Findings, RuleMissingSecret)
		if len(found) != 1 || found[0].Severity != c.severity ||
			strings.Contains(found[0].Hint, "did you mean") != (c.severity == diag.SeverityError) {
			t.Errorf("%s beside %s: %v", c.wants, c.has, found)
		}
	}
}

// sourcesOfOthers are a release and a Kustomization that need what another repo's Kustomization may bring.
const sourcesOfOthers = `---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: flux-system}
spec:
  interval: 1h
  chart: {spec: {chart: web, version: 1.0.0, sourceRef: {kind: HelmRepository, name: bitnami}}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: issuers, namespace: flux-system}
spec:
  interval: 10m
  prune: true
  path: ./issuers
  dependsOn: [{name: cert-manager}]
  sourceRef: {kind: GitRepository, name: flux-system}
`

func gitRepository(name, url, more string) string {
	return "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: " + name + ", namespace: flux-system}\n" +
		"spec: {interval: 1m, url: \"" + url + "\"" + more + "}\n"
}

func platformOf(more string) string {
	return gitRepository("platform", "https://git.example.com/acme/platform", "") +
		strings.Replace(kustomizationOf("platform", "./", "{kind: GitRepository, name: platform}"), "prune: true,", "prune: true,"+more, 1)
}

// What another repo's Kustomization may bring to the cluster is doubted, unless a tenant's rights bound that.
func TestSourcesOfOthers(t *testing.T) {
	const typo = "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: bitnam, namespace: flux-system}\n" +
		"spec: {interval: 1h, url: \"https://charts.example.com\"}\n"
	for name, c := range map[string]struct {
		files            string
		source, depended diag.Severity
	}{
		"of another repo": {platformOf(""), diag.SeverityWarning, diag.SeverityWarning},
		"of nobody":       {"", diag.SeverityError, diag.SeverityError},
		"of a tenant":     {platformOf(" serviceAccountName: tenant,"), diag.SeverityError, diag.SeverityError},
		"mistyped":        {platformOf("") + typo, diag.SeverityError, diag.SeverityWarning},
	} {
		t.Run(name, func(t *testing.T) {
			files := rawRepo()
			files["clusters/mgmt/all.yaml"] = c.files + sourcesOfOthers
			files["issuers/cm.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: here, namespace: default}\n"
			findings := validate(t, files, knownKinds(t)).Findings
			for rule, severity := range map[string]diag.Severity{RuleMissingSource: c.source, RuleMissingDepends: c.depended} {
				if found := ofRule(findings, rule); len(found) != 1 || found[0].Severity != severity {
					t.Errorf("%s: %v", rule, found)
				}
			}
		})
	}
}

// The source with which Flux begins may be made elsewhere, under any name. It is doubted once.
func TestRootSourceOfOthers(t *testing.T) {
	files := rawRepo()
	delete(files, "clusters/mgmt/flux-system/gotk-sync.yaml")
	delete(files, "clusters/mgmt/flux-system/kustomization.yaml")
	delete(files, "clusters/mgmt/infra.yaml")
	for _, name := range []string{"one", "two", "three"} {
		files["clusters/mgmt/"+name+".yaml"] = strings.TrimPrefix(kustomizationOf(name, "./"+name, "{kind: GitRepository, name: fleet}"), "---\n")
		files[name+"/cm.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: default}\n"
	}
	found := ofRule(validate(t, files, knownKinds(t)).Findings, RuleMissingSource)
	if len(found) != 1 || found[0].Severity != diag.SeverityWarning || !strings.Contains(found[0].Hint, "all objects that name it (3)") {
		t.Error(found)
	}
	if !hasObject(t, files, "ConfigMap", "two") {
		t.Error("what it applies is not rendered")
	}
}

// A management cluster that is added later does not make errors of the doubts about a repo with its own layout.
func TestAddedToForeignRepo(t *testing.T) {
	files := secretPair("here", "of-terraform")
	files["fleet.yaml"] = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  managementClusters:
  - {name: old, path: clusters/mgmt, host: {type: existing}, providers: [{name: docker}]}
  - {name: new, cloud: new, host: {type: kind}, providers: [{name: docker}]}
`
	findings := validate(t, files, knownKinds(t)).Findings
	if found := ofRule(findings, RuleMissingSecret); len(found) != 1 || found[0].Severity != diag.SeverityWarning {
		t.Error(findings)
	}
}

// remoteApp applies ./app to other clusters.
func remoteApp(files map[string]string, kubeConfigs ...string) map[string]string {
	text := ""
	for i, kubeConfig := range kubeConfigs {
		text += strings.Replace(kustomizationOf(fmt.Sprintf("app-%d", i), "./app", "{kind: GitRepository, name: flux-system}"), "prune: true,",
			"prune: true, kubeConfig: {"+kubeConfig+"},", 1)
	}
	files["clusters/mgmt/remote.yaml"] = text
	if files["app/all.yaml"] == "" {
		files["app/all.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: here, namespace: default}\n"
	}
	return files
}

// Each kubeConfig leads to a cluster of its own, whatever names it.
func TestClustersOfKubeConfigs(t *testing.T) {
	for name, c := range map[string]struct {
		kubeConfigs []string
		twice       bool
	}{
		"two ConfigMaps":          {[]string{"configMapRef: {name: eks-a}", "configMapRef: {name: eks-b}"}, false},
		"one ConfigMap":           {[]string{"configMapRef: {name: eks-a}", "configMapRef: {name: eks-a}"}, true},
		"a Secret of Cluster API": {[]string{"secretRef: {name: edge}", "secretRef: {name: edge-kubeconfig}"}, false},
		"the same Secret":         {[]string{"secretRef: {name: edge}", "secretRef: {name: edge, key: value}"}, true},
		"two keys":                {[]string{"secretRef: {name: edges, key: a}", "secretRef: {name: edges, key: b}"}, false},
		"keys of one cluster": {[]string{
			"secretRef: {name: edge-kubeconfig}", "secretRef: {name: edge-kubeconfig, key: relative}",
		}, true},
		"a Secret and a ConfigMap":      {[]string{"secretRef: {name: edge}", "configMapRef: {name: edge}"}, false},
		"beside the management cluster": {[]string{"configMapRef: {name: eks-a}"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			files := remoteApp(rawRepo(), c.kubeConfigs...)
			if len(c.kubeConfigs) == 1 {
				files["clusters/mgmt/own.yaml"] = kustomizationOf("own", "./app", "{kind: GitRepository, name: flux-system}")[4:]
			}
			findings := validate(t, files, knownKinds(t)).Findings
			if found := ofRule(findings, RuleConflict); len(found) > 0 != c.twice {
				t.Error(found)
			}
			wanted := strings.Count(strings.Join(c.kubeConfigs, ""), "configMapRef")
			if found := ofRule(findings, RuleMissingConfig); len(found) != wanted {
				t.Errorf("%d missing ConfigMaps are reported: %v", len(found), found)
			}
		})
	}
}

// An API version is gone if any of the clusters serves it no more.
func TestGoneOnOneOfSeveral(t *testing.T) {
	files := rawRepo()
	cluster := func(name, version string) string {
		return "---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata:\n  name: " + name + "\n  namespace: flux-system\n" +
			"  annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}\nspec:\n  topology:\n    classRef: {name: a}\n    version: " +
			version + "\n"
	}
	files["app/all.yaml"] = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: web, namespace: default}\n" +
		"spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}\n"
	for name, versions := range map[string][2]string{"the second": {"v1.24.9", "v1.30.2"}, "the first": {"v1.30.2", "v1.24.9"}} {
		t.Run(name, func(t *testing.T) {
			files["infra/two.yaml"] = strings.TrimPrefix(cluster("one", versions[0])+cluster("two", versions[1]), "---\n")
			found := ofRule(validate(t, remoteApp(files, "secretRef: {name: one-kubeconfig}", "secretRef: {name: two-kubeconfig}"),
				knownKinds(t)).Findings, RuleAPIVersion)
			if len(found) != 1 || found[0].File != "app/all.yaml" || !strings.Contains(found[0].Summary, "which has Kubernetes v1.30.2") {
				t.Error(found)
			}
		})
	}
	files["infra/two.yaml"] = strings.TrimPrefix(cluster("one", "v1.24.9")+cluster("two", "v1.23.1"), "---\n")
	if found := ofRule(validate(t, files, knownKinds(t)).Findings, RuleAPIVersion); len(found) > 0 {
		t.Errorf("both serve it: %v", found)
	}
}

// A source that a later wave declares is known before what comes from it is looked at.
func TestSourcesOfLaterWaves(t *testing.T) {
	for name, source := range map[string]string{
		"another repo":   gitRepository("team-apps", "https://git.example.com/acme/team", ""),
		"another branch": gitRepository("team-apps", "https://git.example.com/acme/infra", ", ref: {branch: next}"),
	} {
		for _, root := range []string{"flux-system", "made-by-terraform"} {
			t.Run(name+" "+root, func(t *testing.T) {
				files := rawRepo()
				files["clusters/mgmt/a.yaml"] = kustomizationOf("apps", "./apps", "{kind: GitRepository, name: team-apps}")[4:] +
					kustomizationOf("own", "./apps", "{kind: GitRepository, name: "+root+"}") +
					kustomizationOf("sources", "./sources", "{kind: GitRepository, name: "+root+"}")
				files["sources/team.yaml"] = source
				files["apps/cm.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: here, namespace: default}\n"
				findings := validate(t, files, knownKinds(t)).Findings
				if found := ofRule(findings, RuleConflict); len(found) > 0 {
					t.Error(found)
				}
				if found := ofRule(findings, RuleForeign); len(found) != 1 || !strings.Contains(found[0].Summary, name) {
					t.Error(found)
				}
			})
		}
	}
}

// The chart of a release may come from a source that a later wave declares, too.
func TestChartsOfLaterWaves(t *testing.T) {
	files := rawRepo()
	files["clusters/mgmt/release.yaml"] = `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: flux-system}
spec:
  interval: 1h
  chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: team}}}
` + kustomizationOf("sources", "./sources", "{kind: GitRepository, name: flux-system}")
	files["sources/team.yaml"] = gitRepository("team", "https://git.example.com/acme/team", "")
	findings := validate(t, files, knownKinds(t)).Findings
	found := ofRule(findings, RuleForeign)
	if len(found) != 1 || !strings.Contains(found[0].Summary, "its chart comes from another repository") {
		t.Error(found)
	}
	for _, rule := range []string{RuleMissingPath, RuleHelm} {
		if found := ofRule(findings, rule); len(found) > 0 {
			t.Error(found)
		}
	}
}

// A forge takes the paths of its repositories in any case, so such a source is this repo.
func TestSourceInAnotherCase(t *testing.T) {
	files := rawRepo()
	files["clusters/mgmt/flux-system/gotk-sync.yaml"] = strings.Replace(files["clusters/mgmt/flux-system/gotk-sync.yaml"],
		"https://git.example.com/acme/infra.git", "https://github.com/Acme/Infra", 1)
	files["clusters/mgmt/a.yaml"] = gitRepository("same", "ssh://git@github.com/acme/infra", ", ref: {branch: main}") +
		kustomizationOf("apps", "./apps", "{kind: GitRepository, name: same}")
	files["apps/cm.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: here, namespace: default}\ndat: {}\n"
	findings := validate(t, files, knownKinds(t)).Findings
	if found := ofRule(findings, RuleForeign); len(found) > 0 {
		t.Error(found)
	}
	if found := ofRule(findings, RuleUnknownField); len(found) != 1 {
		t.Errorf("what it applies is not checked: %v", findings)
	}
}

// A deletionPolicy deletes objects although nothing is pruned.
func TestProtectionByPrune(t *testing.T) {
	for spec, protected := range map[string]bool{
		"prune: true": false, "prune: false": true, "prune: false, deletionPolicy: Delete": false,
		"prune: false, deletionPolicy: WaitForTermination": false, "prune: false, deletionPolicy: Orphan": true,
	} {
		files := rawRepo()
		files["clusters/mgmt/more.yaml"] = strings.Replace(kustomizationOf("more", "./more", "{kind: GitRepository, name: flux-system}")[4:],
			"prune: true", spec, 1)
		files["more/cluster.yaml"] = "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: bare, namespace: default}\n" +
			"spec: {topology: {classRef: {name: a}, version: v1.33.2}}\n"
		found := false
		for _, f := range ofRule(validate(t, files, knownKinds(t)).Findings, RulePrune) {
			found = found || f.File == "more/cluster.yaml"
		}
		if found == protected {
			t.Errorf("%s: a finding is %t", spec, found)
		}
	}
}
