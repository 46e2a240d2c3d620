package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const deepFleet = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: test}
spec:
  git: {url: https://git.example.com/fleet.git}
  environments: [{name: dev}]
  managementClusters:
  - name: mgmt
    kubernetesVersion: v1.36.3
    providers: [{name: docker}]
`

const deepApply = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: base, namespace: flux-system}
spec:
  interval: 10m
  path: ./base
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
  postBuild: {substitute: {a: b}, substituteFrom: [{kind: ConfigMap, name: values}]}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: flux-system}
spec:
  interval: 10m
  chart: {spec: {chart: ./charts/web, valuesFiles: [charts/web/values.yaml], sourceRef: {kind: GitRepository, name: flux-system}}}
  valuesFrom: [{kind: ConfigMap, name: values}]
`

// deepForms are texts that are nested deep, each in another way; 1,000,000 levels are at most 10 MB.
var deepForms = map[string]func(levels int) string{
	"lists":      func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) },
	"mappings":   func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) },
	"open":       func(n int) string { return strings.Repeat(`[`, n) },
	"block":      func(n int) string { return "\n " + strings.Repeat("- ", n) + "x" },
	"conditions": func(n int) string { return strings.Repeat("{{if 1}}", n) + "x" + strings.Repeat("{{end}}", n) },
	"parens":     func(n int) string { return strings.Repeat("(", n) + "1" + strings.Repeat(")", n) },
	"defaults":   func(n int) string { return strings.Repeat("${a:-", n) + "x" + strings.Repeat("}", n) },
	"path":       func(n int) string { return strings.Repeat("a.", n) + "a" },
	"slashes":    func(n int) string { return strings.Repeat("a/", n) + "a" },
}

const deepMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: flux-system}\n"

// deepPlaces are where a nested text can stand in a repo: %s.
var deepPlaces = map[string]struct {
	file, text, form string
}{
	"fleet.yaml":      {"fleet.yaml", deepFleet + "  x: %s\n", "block"},
	"fleet.lock":      {"fleet.lock", "apiVersion: fleetctl.dev/v1alpha1\nkind: Lock\ncomponents: %s\n", "block"},
	"sops":            {".sops.yaml", "creation_rules: %s\n", "block"},
	"a manifest":      {"base/a.yaml", deepMap + "data: %s\n", "block"},
	"a JSON manifest": {"base/a.json", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": %s}`, "open"},
	"a list":          {"base/a.yaml", "apiVersion: v1\nkind: List\nitems: %s\n", "block"},
	"variables":       {"base/a.yaml", deepMap + "data: {a: '%s'}\n", "defaults"},
	"kustomization":   {"base/kustomization.yaml", "resources: [a.yaml]\npatches: %s\n", "block"},
	"an inline patch": {"base/kustomization.yaml", "resources: [a.yaml]\npatches: [{patch: '%s', target: {kind: " +
		"ConfigMap}}]\n", "mappings"},
	"a replacement": {"base/kustomization.yaml", "resources: [a.yaml]\nreplacements: [{source: {kind: ConfigMap, name: x}, " +
		"targets: [{select: {kind: ConfigMap}, fieldPaths: [%s], options: {create: true}}]}]\n", "path"},
	"a path": {"base/kustomization.yaml", "resources: [a.yaml]\npatches: [{patch: '[{op: add, path: /%s, value: x}]', " +
		"target: {kind: ConfigMap}}]\n", "slashes"},
	"labels": {"base/kustomization.yaml", "resources: [a.yaml]\nlabels: [{pairs: {a: b}, fields: [{path: %s, create: " +
		"true}]}]\n", "slashes"},
	"a patch": {"base/p.yaml", deepMap + "data: %s\n", "block"},
	"values of a map": {"providers/docker/v1/mgmt/values.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: values, " +
		"namespace: flux-system}\ndata: {values.yaml: '%s'}\n", "defaults"},
	"chart":        {"charts/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\nkeywords: %s\n", "block"},
	"chart values": {"charts/web/values.yaml", "a: %s\n", "block"},
	"chart schema": {"charts/web/values.schema.json", `{"type": "object", "properties": {"a": %s}}`, "open"},
	"nots":         {"charts/web/values.schema.json", `{"not": %s}`, "mappings"},
	"chart lock":   {"charts/web/Chart.lock", "dependencies: %s\n", "mappings"},
	"requirements": {"charts/web/requirements.yaml", "dependencies: %s\n", "mappings"},
	"a chart's CRD": {"charts/web/crds/c.yaml", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: " +
		"{name: as.example.com}\nspec: %s\n", "mappings"},
	"chart in chart": {"charts/web/charts/x/Chart.yaml", "apiVersion: v2\nname: x\nversion: 1.0.0\nkeywords: %s\n", "lists"},
	"output":         {"charts/web/templates/a.yaml", deepMap + "data: %s\n", "block"},
	"conditions":     {"charts/web/templates/a.yaml", "%s\n", "conditions"},
	"parentheses":    {"charts/web/templates/a.yaml", deepMap + "data: {a: {{ %s }}}\n", "parens"},
	"made output":    {"charts/web/templates/a.yaml", deepMap + "data: {{ repeat 1000000 \"[\" }}{{/* %s */}}\n", "parens"},
	"fromYaml":       {"charts/web/templates/a.yaml", deepMap + "data: {a: {{ fromYaml `a: %s` | quote }}}\n", "mappings"},
	"fromJson":       {"charts/web/templates/a.yaml", deepMap + "data: {a: {{ fromJson `{\"a\": %s}` | quote }}}\n", "mappings"},
	"a pattern":      {"charts/web/templates/a.yaml", deepMap + "data: {a: {{ regexMatch `%s` `1` | quote }}}\n", "parens"},
	"tpl":            {"charts/web/templates/a.yaml", deepMap + "data: {a: {{ tpl `%s` . | quote }}}\n", "conditions"},
	"release values": {"providers/docker/v1/mgmt/more.yaml", deepRelease + "  values: {a: %s}\n", "block"},
	"post renderers": {"providers/docker/v1/mgmt/more.yaml", deepRelease + "  postRenderers: [{kustomize: {patches: [{patch: " +
		"'%s'}]}}]\n", "mappings"},
	"target path": {"providers/docker/v1/mgmt/more.yaml", deepRelease + "  valuesFrom: [{kind: ConfigMap, name: values, " +
		"targetPath: %s}]\n", "path"},
	"substitute":      {"providers/docker/v1/mgmt/more.yaml", deepKustomization + "  postBuild: {substitute: {a: %s}}\n", "mappings"},
	"substitute text": {"providers/docker/v1/mgmt/more.yaml", deepKustomization + "  postBuild: {substitute: {a: '%s'}}\n", "defaults"},
	"flux patches": {"providers/docker/v1/mgmt/more.yaml", deepKustomization + "  patches: [{patch: '%s', target: {kind: " +
		"ConfigMap}}]\n", "mappings"},
	"CEL": {"providers/docker/v1/mgmt/more.yaml", deepKustomization + "  healthCheckExprs: [{apiVersion: v1, kind: " +
		"ConfigMap, current: '%s'}]\n", "parens"},
	"resource set": {"providers/docker/v1/mgmt/more.yaml", "apiVersion: addons.cluster.x-k8s.io/v1beta2\nkind: " +
		"ClusterResourceSet\nmetadata: {name: x, namespace: flux-system}\nspec: {clusterSelector: {}, resources: [{kind: ConfigMap, " +
		"name: y}]}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: y, namespace: flux-system}\ndata: {a: '%s'}\n", "mappings"},
	"a CRD": {"providers/docker/v1/mgmt/more.yaml", deepCRD + "%s}}}]\n", "mappings"},
	"a rule of a CRD": {"providers/docker/v1/mgmt/more.yaml", deepCRD + "{type: string}}, x-kubernetes-validations: [{rule: '%s == " +
		"1'}]}}]\n", "parens"},
	"a pattern of CRD": {"providers/docker/v1/mgmt/more.yaml", deepCRD + "{type: string, pattern: '%s'}}}}]\n", "parens"},
	"cluster":          {"providers/docker/v1/clusters/dev/x/cluster.yaml", deepRelease + "  values: %s\n", "block"},
	"machine files": {"providers/docker/v1/mgmt/more.yaml", "apiVersion: bootstrap.cluster.x-k8s.io/v1beta2\nkind: " +
		"KubeadmConfig\nmetadata: {name: x, namespace: flux-system}\nspec: {files: [{path: /a, content: '%s'}]}\n", "mappings"},
	"a secret": {"providers/docker/v1/mgmt/more.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nstringData: {a: " +
		"'%s'}\nsops: {mac: x}\n", "mappings"},
	"sops block": {"providers/docker/v1/mgmt/more.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nsops: " +
		"%s\n", "mappings"},
	"renovate": {"renovate.json", `{"packageRules": %s}`, "open"},
	"pipeline": {".github/workflows/fleet.yaml", "jobs: %s\n", "lists"},
	"identities": {"providers/docker/v1/mgmt/identities.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nx: " +
		"%s\n", "lists"},
	"--crds":        {"crds/c.yaml", deepCRD + "%s}}}]\n", "lists"},
	"ignored paths": {".sourceignore", "%s\n", "slashes"},
}

const deepRelease = `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: more, namespace: flux-system}
spec:
  interval: 10m
  chart: {spec: {chart: ./charts/web, sourceRef: {kind: GitRepository, name: flux-system}}}
`

const deepKustomization = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: more, namespace: flux-system}
spec:
  interval: 10m
  path: ./base
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
`

const deepCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: as.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: A, plural: as}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {a: `

// unnamed are the places whose text is valid there, that fleetctl does not read, or whose error names the file that uses them.
var unnamed = []string{
	"CEL", "a JSON manifest", "flux patches", "ignored paths", "machine files", "post renderers", "renovate", "substitute " +
		"text", "variables",
}

// A text that is nested a million levels deep, in each place of a repo: validate ends in time, in bounded memory, and names the file.
func TestDeepFiles(t *testing.T) {
	const levels, most = 1_000_000, 3 * time.Minute // most is for a busy machine
	for name, place := range deepPlaces {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := deepRepo(t)
			text := strings.ReplaceAll(place.text, "%s", deepForms[place.form](levels))
			file := filepath.Join(dir, filepath.FromSlash(place.file))
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), most)
			defer cancel()
			c := exec.CommandContext(ctx, "sh", "-c", `ulimit -v 4000000 && exec fleetctl "$@"`, "sh", "-C", dir, "validate", "--offline")
			if strings.HasPrefix(place.file, "crds/") {
				c.Args = append(c.Args, "--crds", filepath.Dir(file))
			}
			said, err := c.CombinedOutput()
			if code := c.ProcessState.ExitCode(); code != 0 && code != 1 && code != 3 {
				t.Errorf("%v\n%.2000s", err, said)
			}
			for _, crash := range []string{"goroutine ", "fatal error", "panic"} {
				if bytes.Contains(said, []byte(crash)) {
					t.Errorf("it crashed: %.2000s", said)
				}
			}
			if !slices.Contains(unnamed, name) && !bytes.Contains(said, []byte(path.Base(place.file))) {
				t.Errorf("it does not name %s: %.2000s", place.file, said)
			}
			if len(said) > 1<<16 {
				t.Errorf("it says %d KiB", len(said)>>10)
			}
		})
	}
}

func deepRepo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"fleet.yaml": deepFleet, "base/a.yaml": deepMap + "data: {a: b}\n", "base/p.yaml": deepMap + "data: {a: c}\n",
		"providers/docker/v1/mgmt/values.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: values, namespace: " +
			"flux-system}\ndata: {values.yaml: 'a: b'}\n",
		"base/a.json":             "{}",
		"base/kustomization.yaml": "resources: [a.yaml]\npatches: [{path: p.yaml}]\n",
		"charts/web/Chart.yaml":   "apiVersion: v2\nname: web\nversion: 1.0.0\n", "charts/web/templates/a.yaml": "",
		"charts/web/values.yaml":              "a: b\n",
		"providers/docker/v1/mgmt/apply.yaml": deepApply,
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
