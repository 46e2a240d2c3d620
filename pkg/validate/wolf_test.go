package validate

import (
	"strings"
	"testing"
)

// What only refers to a secret, and what something else makes, is nothing to report.
func TestReferencesAreNoSecrets(t *testing.T) {
	for name, value := range map[string]string{
		"variable": "${PASSWORD}", "variable with a default": "${PASSWORD:=}", "two variables": "${USER}:${PASSWORD}",
		"in a URL":  "postgres://app:${PASSWORD}@db.example.com:5432/app",
		"1Password": "op://vault/item/password", "vals": "ref+vault://secret/data/app#/password",
		"vals in a text": "ref+awssecrets://app/db#/password+",
		"bank-vaults":    "vault:secret/data/app#password", "argocd-vault-plugin": "<path:secret/data/app#password>", "a key of it": "<password>",
		"Secrets Manager":      "arn:aws:secretsmanager:eu-central-1:123456789012:secret:app-Ab12Cd",
		"Google's":             "projects/p/secrets/app/versions/latest",
		"Google's, of berglas": "sm://p/app", "berglas": "berglas://bucket/app", "Key Vault": "azurekeyvault://app/password",
		"AWS, of helm-secrets": "awssm://app",
		"Infisical":            "infisical://dev/app", "Doppler": "doppler://app", "null": "null", "empty": `""`,
	} {
		t.Run(name, func(t *testing.T) {
			quoted := value
			if name != "null" && name != "empty" {
				quoted = `"` + value + `"`
			}
			files := rawRepo()
			files["infra/app.yaml"] = "apiVersion: v1\nkind: Secret\nmetadata: {name: app, namespace: default}\nstringData:\n  password: " + quoted +
				"\n"
			for _, f := range validate(t, files, knownKinds(t)).Findings {
				if f.File == "infra/app.yaml" {
					t.Errorf("%s [%s]", f, f.Rule)
				}
			}
		})
	}
}

// What holds a secret beside a reference is one.
func TestSecretsBesideReferences(t *testing.T) {
	for _, value := range []string{
		"hunter2${SUFFIX}", "postgres://app:hunter2@${HOST}/app", "op://vault/item\nhunter2", "vault:hunter2",
		"<hunter 2>", "ref+vault", "${PASSWORD:=hunter2}x", "arn:hunter2",
	} {
		t.Run(value, func(t *testing.T) {
			files := rawRepo()
			files["infra/app.yaml"] = "apiVersion: v1\nkind: Secret\nmetadata: {name: app, namespace: default}\nstringData:\n  password: |-\n    " +
				strings.ReplaceAll(value, "\n", "\n    ") + "\n"
			found := false
			for _, f := range validate(t, files, knownKinds(t)).Findings {
				found = found || f.Rule == RulePlainSecret && f.File == "infra/app.yaml"
			}
			if !found {
				t.Error("it is not found")
			}
		})
	}
}

// made are the objects that make Secrets, ConfigMaps and sources of a name, each with what refers to them.
var made = map[string]string{
	"ExternalSecret": "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: other, namespace: app}\n" +
		"spec: {target: {name: made}}\n",
	"ExternalSecret of its own name": "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: made, namespace: app}\n" +
		"spec: {}\n",
	"ClusterExternalSecret": "apiVersion: external-secrets.io/v1\nkind: ClusterExternalSecret\nmetadata: {name: other}\nspec: " +
		"{namespaces: [app], externalSecretSpec: {target: {name: made}}}\n",
	"ClusterExternalSecret by label": "apiVersion: external-secrets.io/v1\nkind: ClusterExternalSecret\nmetadata: {name: other}\nspec: " +
		"{externalSecretName: made, namespaceSelectors: [{matchLabels: {a: b}}], externalSecretSpec: {}}\n",
	"SealedSecret": "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: made, namespace: app}\nspec: " +
		"{encryptedData: {a: b}}\n",
	"SealedSecret with a template": "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: x, namespace: app}\nspec: " +
		"{encryptedData: {a: b}, template: {metadata: {name: made}}}\n",
	"SOPS": "apiVersion: v1\nkind: Secret\nmetadata: {name: made, namespace: app}\nstringData: {a: " +
		"'ENC[AES256_GCM,data:Zm9v,iv:YmFy,tag:YmF6,type:str]'}\nsops: {lastmodified: \"2026-01-01T00:00:00Z\"}\n",
	"SopsSecret": "apiVersion: isindir.github.com/v1alpha3\nkind: SopsSecret\nmetadata: {name: x, namespace: app}\n" +
		"spec: {secretTemplates: [{name: made}]}\n",
	"VaultStaticSecret": "apiVersion: secrets.hashicorp.com/v1beta1\nkind: VaultStaticSecret\nmetadata: {name: x, namespace: " +
		"app}\nspec: {destination: {name: made, create: true}}\n",
	"OnePasswordItem": "apiVersion: onepassword.com/v1\nkind: OnePasswordItem\nmetadata: {name: made, namespace: app}\n" +
		"spec: {itemPath: vaults/a/items/b}\n",
	"Certificate": "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: x, namespace: app}\nspec: " +
		"{secretName: made, dnsNames: [a.example.com], issuerRef: {name: i}}\n",
	"InfisicalSecret": "apiVersion: secrets.infisical.com/v1alpha1\nkind: InfisicalSecret\nmetadata: {name: x, namespace: " +
		"ops}\nspec: {managedSecretReference: {secretName: made, secretNamespace: app}}\n",
	"DopplerSecret": "apiVersion: secrets.doppler.com/v1alpha1\nkind: DopplerSecret\nmetadata: {name: x, namespace: ops}\n" +
		"spec: {managedSecret: {name: made, namespace: app}}\n",
	"AzureKeyVaultSecret": "apiVersion: spv.no/v2beta1\nkind: AzureKeyVaultSecret\nmetadata: {name: x, namespace: app}\nspec: " +
		"{output: {secret: {name: made}}}\n",
}

const uses = `apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: Namespace
metadata: {name: ops}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: app}
spec: {interval: 1h, url: "https://charts.example.com", secretRef: {name: made}}
`

func TestMadeSecrets(t *testing.T) {
	for name, object := range made {
		t.Run(name, func(t *testing.T) {
			files := rawRepo()
			files["infra/app.yaml"] = uses + "---\n" + object
			for _, f := range validate(t, files, knownKinds(t)).Findings {
				if f.File == "infra/app.yaml" && f.Rule != RuleUnknownKind {
					t.Errorf("%s [%s]", f, f.Rule)
				}
			}
		})
	}
	for name, object := range map[string]string{
		"PushSecret": "apiVersion: external-secrets.io/v1alpha1\nkind: PushSecret\nmetadata: {name: made, namespace: app}\nspec: " +
			"{}\n",
		"ExternalSecret, renamed": "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: made, namespace: app}\nspec: " +
			"{target: {name: other}}\n",
		"ClusterExternalSecret for another namespace": "apiVersion: external-secrets.io/v1\nkind: ClusterExternalSecret\nmetadata: {name: " +
			"made}\nspec: {namespaces: [ops], externalSecretSpec: {}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			files := rawRepo()
			files["infra/app.yaml"] = uses + "---\n" + object
			found := false
			for _, f := range validate(t, files, knownKinds(t)).Findings {
				found = found || f.Rule == RuleMissingSecret
			}
			if !found {
				t.Error("nobody makes the Secret, and nothing says so")
			}
		})
	}
}

const release = `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts}
spec: {interval: 1h, url: "https://charts.example.com"}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: app}
spec:
  interval: 1h
  chart: {spec: {chart: app, version: 1.0.0, sourceRef: {kind: HelmRepository, name: charts}}}
  valuesFrom:
  - {kind: ConfigMap, name: values}
  - {kind: Secret, name: secrets}
`

// generated is a folder whose kustomization.yaml makes a ConfigMap and a Secret, with what uses them.
func generated(options, configurations string) map[string]string {
	files := rawRepo()
	files["clusters/mgmt/app.yaml"] = strings.NewReplacer("name: infra", "name: app", "./infra", "./app").Replace(
		files["clusters/mgmt/infra.yaml"])
	files["app/kustomization.yaml"] = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: default
resources: [release.yaml]
configMapGenerator:
- name: values
  files: [values.yaml=values.txt]
secretGenerator:
- name: secrets
  files: [values.yaml=secrets.enc.yaml]
` + options + configurations
	files["app/values.txt"] = "a: b\n"
	files["app/secrets.enc.yaml"] = "a: ENC[AES256_GCM,data:Zm9v,iv:YmFy,tag:YmF6,type:str]\nsops:\n  lastmodified: \"2026-01-01T00:00:00Z\"\n"
	if configurations == "" {
		files["app/release.yaml"] = release
		return files
	}
	files["app/config.yaml"] =
		"nameReference:\n- kind: ConfigMap\n  version: v1\n  fieldSpecs: [{path: spec/valuesFrom/name, kind: HelmRelease}]\n- kind: Secret\n  " +
			"version: v1\n  fieldSpecs: [{path: spec/valuesFrom/name, kind: HelmRelease}]\n"
	files["app/release.yaml"] = release
	return files
}

func TestGenerators(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"without a hash": generated("generatorOptions: {disableNameSuffixHash: true}\n", ""),
		"with a hash":    generated("", "configurations: [config.yaml]\n"),
	} {
		t.Run(name, func(t *testing.T) {
			for _, f := range validate(t, files, knownKinds(t)).Findings {
				if strings.HasPrefix(f.File, "app/") && f.Rule != RuleForeign {
					t.Errorf("%s [%s] (%s)", f, f.Rule, f.Hint)
				}
			}
		})
	}
	t.Run("with a hash that nobody knows of", func(t *testing.T) {
		found := 0
		for _, f := range validate(t, generated("", ""), knownKinds(t)).Findings {
			if (f.Rule == RuleMissingConfig || f.Rule == RuleMissingSecret) && f.File == "app/release.yaml" {
				found++
				if !strings.Contains(f.Hint, "hash") {
					t.Errorf("the hint is %q", f.Hint)
				}
			}
		}
		if found != 2 {
			t.Errorf("%d are found", found)
		}
	})
}

// Sources that something makes: ArtifactGenerator, FluxInstance and ResourceSet.
func TestMadeSources(t *testing.T) {
	files := rawRepo()
	files["infra/sources.yaml"] = `apiVersion: source.extensions.fluxcd.io/v1beta1
kind: ArtifactGenerator
metadata: {name: split, namespace: flux-system}
spec: {sources: [{alias: repo, kind: GitRepository, name: flux-system}], artifacts: [{name: split-app}]}
---
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: apps, namespace: flux-system}
spec:
  inputs: [{name: shop}]
  resources:
  - apiVersion: source.toolkit.fluxcd.io/v1
    kind: OCIRepository
    metadata: {name: "<< inputs.name >>-charts", namespace: flux-system}
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: plain}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: split, namespace: flux-system}
spec:
  interval: 10m
  prune: true
  path: ./app
  sourceRef: {kind: ExternalArtifact, name: split-app}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: shop, namespace: flux-system}
spec:
  interval: 1h
  chartRef: {kind: OCIRepository, name: shop-charts}
  valuesFrom: [{kind: ConfigMap, name: plain}]
`
	files["app/a.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n"
	for _, f := range validate(t, files, knownKinds(t)).Findings {
		if f.File == "infra/sources.yaml" && f.Rule != RuleUnknownKind && f.Rule != RuleForeign {
			t.Errorf("%s [%s] (%s)", f, f.Rule, f.Hint)
		}
	}
}

// A value that only the cluster knows is of any type, and null is as good as nothing.
func TestOpenValues(t *testing.T) {
	files := rawRepo()
	files["infra/app.yaml"] = `apiVersion: apps/v1
kind: Deployment
metadata: {name: app, namespace: default, labels: null}
spec:
  replicas: null
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}, annotations: null}
    spec:
      nodeSelector: null
      containers: [{name: app, image: app, resources: null}]
`
	files["infra/dev2.yaml"] =
		"apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: DevMachineTemplate\nmetadata: {name: null-er, namespace: default}\nspec: " +
			"{template: {metadata: null, spec: {backend: {inMemory: {vm: null}}}}}\n"
	for _, f := range validate(t, files, knownKinds(t)).Findings {
		if f.File == "infra/app.yaml" || f.File == "infra/dev2.yaml" {
			t.Errorf("%s [%s] (%s)", f, f.Rule, f.Hint)
		}
	}
}

// The same fault in many objects has one gist, whatever the objects' names.
func TestEqualFindingsHaveOneGist(t *testing.T) {
	files := rawRepo()
	for _, name := range []string{"one", "two", "three"} {
		files["infra/"+name+".yaml"] = strings.NewReplacer("  replicas: 3\n", "  replicaz: 3\n", "dev", name, "kind: Dev", "kind: Dev").Replace(
			clouds[len(clouds)-1].manifests())
		files["infra/"+name+".yaml"] = strings.Replace(files["infra/"+name+".yaml"], "name: "+name+"-wm\n", "name: "+name+"-gone\n", 1)
	}
	gists := map[string]map[string]int{}
	for _, f := range validate(t, files, knownKinds(t)).Findings {
		if gists[f.Rule] == nil {
			gists[f.Rule] = map[string]int{}
		}
		gists[f.Rule][f.Gist]++
	}
	for _, rule := range []string{RuleUnknownField, RuleClusterRef} {
		if len(gists[rule]) != 1 {
			t.Errorf("%s: %v", rule, gists[rule])
		}
		for gist, n := range gists[rule] {
			if n != 3 {
				t.Errorf("%s: %q %d times", rule, gist, n)
			}
		}
	}
}
