package validate

import (
	"fmt"
	"strings"
	"testing"
)

// aimedFolder is a folder whose overlay is still to be written.
func aimedFolder(overlay string) map[string]string {
	files := rawRepo()
	flux := strings.ReplaceAll(files["clusters/mgmt/infra.yaml"], "infra", "app")
	files["clusters/mgmt/app.yaml"] = strings.ReplaceAll(flux, "./app", "./app/over")
	files["app/base/kustomization.yaml"] = "resources: [all.yaml]\n"
	files["app/base/all.yaml"] = `apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {domain: shop.example.com}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: front, namespace: shop, labels: {app: front}}
spec:
  selector: {matchLabels: {app: front}}
  template:
    metadata: {labels: {app: front}}
    spec:
      containers: [{name: front, image: "registry.example.com:5000/acme/front:v1"}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: gone, namespace: shop}
spec:
  selector: {matchLabels: {app: gone}}
  template:
    metadata: {labels: {app: gone}}
    spec:
      containers: [{name: gone, image: registry.example.com:5000/acme/gone@sha256:` + strings.Repeat("0", 64) + `}]
`
	files["app/over/gone.yaml"] = "$patch: delete\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: gone}\n"
	files["app/over/name.yaml"] = "- op: replace\n  path: /metadata/name\n  value: back\n"
	files["app/over/set.yaml"] = "- source: {kind: ConfigMap, name: settings, fieldPath: data.domain}\n  targets:\n" +
		"  - select: {kind: Deployment, name: frnot}\n    fieldPaths: ['spec.template.spec.containers.0.name']\n"
	files["app/over/kustomization.yaml"] = "resources: [../base]\n" + overlay
	return files
}

const (
	twoMore  = "  patch: |\n    - {op: add, path: /spec/replicas, value: 2}\n"
	fromHost = "replacements:\n- source: {kind: ConfigMap, name: settings, fieldPath: data.domain}\n  targets:\n"
)

// What a kustomization.yaml aims at may have another name, namespace or kind afterwards, or be gone.
func TestWhatWasAimedAt(t *testing.T) {
	for name, overlay := range map[string]string{
		"a prefix":    "namePrefix: dev-\npatches:\n- target: {kind: Deployment, name: front}\n" + twoMore,
		"a suffix":    "nameSuffix: -dev\npatches:\n- target: {kind: Deployment, name: front}\n" + twoMore,
		"a namespace": "namespace: market\npatches:\n- target: {kind: Deployment, name: front, namespace: shop}\n" + twoMore,
		"a generated name": "configMapGenerator:\n- {name: pages, literals: [a=b]}\npatches:\n- target: {kind: ConfigMap, name: pages}\n" +
			"  patch: |\n    - {op: add, path: /data/c, value: d}\n",
		"a deletion in a file": "patches:\n- path: gone.yaml\n  target: {kind: Deployment, name: gone}\n",
		"a deletion": "patches:\n- target: {kind: Deployment, name: gone}\n" +
			"  patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: gone}, $patch: delete}'\n",
		"a new name": "patches:\n- target: {kind: Deployment, name: front}\n" +
			"  patch: |\n    - {op: replace, path: /metadata/name, value: back}\n",
		"a new name in a file": "patches:\n- target: {kind: Deployment, name: front}\n  path: name.yaml\n",
		"a new kind": "patches:\n- target: {kind: Deployment, name: front}\n  options: {allowKindChange: true}\n  patch: |\n" +
			"    kind: DaemonSet\n    apiVersion: apps/v1\n    metadata: {name: front}\n",
		"an image":           "images:\n- {name: 'registry.example.com:5000/acme/front', newTag: v2}\n",
		"a digest":           "images:\n- {name: 'registry.example.com:5000/acme/gone', newTag: v2}\n",
		"an image elsewhere": "images:\n- {name: 'registry.example.com:5000/acme/front', newName: mirror.example.com/front, newTag: v2}\n",
		"an image of a tag":  "images:\n- {name: 'registry.example.com:5000/acme/front:v1', newTag: v2}\n",
		"a list of copies":   "images:\n- {name: docker.io/acme/other, newName: mirror.example.com/other}\n",
		"a pattern":          "images:\n- {name: '.*/acme/nowhere', newTag: v2}\n",
		"an image of a value": fromHost + "  - select: {kind: Deployment, name: front}\n" +
			"    fieldPaths: ['spec.template.spec.containers.0.image']\nimages:\n- {name: shop, newTag: v2}\n",
		"a replacement": fromHost + "  - select: {kind: Deployment, name: front}\n    fieldPaths: ['spec.template.spec.containers.0.name']\n",
		"a replaced prefix": "namePrefix: dev-\n" + fromHost + "  - select: {kind: Deployment, name: front}\n" +
			"    fieldPaths: ['spec.template.spec.containers.0.name']\n",
		"a replaced label":       fromHost + "  - select: {labelSelector: app=front}\n    fieldPaths: ['metadata.labels.app']\n",
		"a replaced name":        fromHost + "  - select: {kind: ConfigMap, name: settings}\n",
		"a replacement by label": fromHost + "  - select: {labelSelector: app=front}\n    fieldPaths: ['spec.template.spec.containers.0.name']\n",
	} {
		t.Run(name, func(t *testing.T) {
			for _, f := range validate(t, aimedFolder(overlay), knownKinds(t)).Findings {
				if f.Rule == RulePatch || f.Rule == RuleKustomize {
					t.Errorf("%s [%s]", f, f.Rule)
				}
			}
		})
	}
}

// A patch of a Flux Kustomization finds objects by the names that they have in their files.
func TestWhatFluxAimedAt(t *testing.T) {
	for name, overlay := range map[string]string{"a prefix": "namePrefix: dev-\n", "a namespace": "namespace: market\n", "nothing": ""} {
		t.Run(name, func(t *testing.T) {
			files := aimedFolder(overlay)
			files["clusters/mgmt/app.yaml"] += "  patches:\n  - target: {kind: Deployment, name: front, namespace: shop}\n" +
				strings.ReplaceAll("\n"+twoMore, "\n", "\n  ")[1:] + "\n  images:\n  - {name: 'registry.example.com:5000/acme/front', newTag: v2}\n"
			for _, f := range validate(t, files, knownKinds(t)).Findings {
				if f.Rule == RulePatch || f.Rule == RuleKustomize {
					t.Errorf("%s [%s]", f, f.Rule)
				}
			}
		})
	}
}

// A Flux Kustomization renames what it applies after its patches have found their objects, also in a folder without a kustomization.yaml.
func TestWhatFluxRenames(t *testing.T) {
	for name, fields := range map[string]string{
		"a prefix": "namePrefix: dev-", "a suffix": "nameSuffix: -dev", "a namespace": "targetNamespace: market", "nothing": "force: false",
	} {
		t.Run(name, func(t *testing.T) {
			files := aimedFolder("")
			files["clusters/mgmt/app.yaml"] = strings.ReplaceAll(files["clusters/mgmt/app.yaml"], "./app/over", "./app/plain") +
				"  " + fields + "\n  patches:\n  - target: {kind: Deployment, name: front, namespace: shop}\n" +
				strings.ReplaceAll("\n"+twoMore, "\n", "\n  ")[1:] + "\n"
			for i, object := range strings.Split(files["app/base/all.yaml"], "---\n") {
				files[fmt.Sprintf("app/plain/%d.yaml", i)] = object
			}
			for _, f := range validate(t, files, knownKinds(t)).Findings {
				if f.Rule == RulePatch || f.Rule == RuleKustomize {
					t.Errorf("%s [%s]", f, f.Rule)
				}
			}
		})
	}
}

func TestAimedAtNothing(t *testing.T) {
	for name, c := range map[string]struct{ overlay, at, hint string }{
		"a patch beside a prefix":    {"namePrefix: dev-\npatches:\n- target: {kind: Deployment, name: frnot}\n" + twoMore, "- target", ""},
		"a patch beside a namespace": {"namespace: market\npatches:\n- target: {kind: Deployment, name: fron}\n" + twoMore, "- target", ""},
		"an image": {
			"images:\n- {name: 'registry.example.com:5000/acme/fornt', newTag: v2}\n", "fornt", "did you mean registry.example.com:5000/acme/front?",
		},
		"an image that is copied": {
			"images:\n- {name: nowhere, newName: mirror.example.com/nowhere, digest: 'sha256:" + strings.Repeat("1", 64) + "'}\n", "nowhere", "",
		},
		"a replacement": {
			fromHost + "  - select: {kind: Deployment, name: frnot}\n    fieldPaths: ['spec.template.spec.containers.0.name']\n", "frnot", "",
		},
		"the second target": {
			fromHost + "  - select: {kind: Deployment, name: front}\n    fieldPaths: ['spec.template.spec.containers.0.name']\n" +
				"  - select: {labelSelector: app=frnot}\n    fieldPaths: ['spec.template.spec.containers.0.name']\n", "frnot", "",
		},
		"a replacement in a file": {"replacements:\n- path: set.yaml\n", "set.yaml", ""},
	} {
		t.Run(name, func(t *testing.T) {
			files, found := aimedFolder(c.overlay), false
			const at = "app/over/kustomization.yaml"
			for _, f := range validate(t, files, knownKinds(t)).Findings {
				if f.Rule != RulePatch {
					continue
				}
				lines := strings.Split(files[at], "\n")
				if f.File != at || f.Line == 0 || !strings.Contains(lines[f.Line-1], c.at) || !strings.Contains(f.Hint, c.hint) {
					t.Errorf("%s [%s] %s", f, f.Rule, f.Hint)
				}
				found = true
			}
			if !found {
				t.Error("it is not found")
			}
		})
	}
}
