package render_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/render"
)

const (
	hostileFlux = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: base, namespace: flux-system}
spec:
  interval: 10m
  path: ./base
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
`
	goodObject = "apiVersion: v1\nkind: Namespace\nmetadata: {name: good}\n"
)

// deep is a field with so many fields within each other that kustomize would take gigabytes for it; deepLines is the same in lines.
var (
	deep      = "data: " + strings.Repeat("{a: ", 5000) + "b" + strings.Repeat("}", 5000) + "\n"
	deepLines = func() string {
		var b strings.Builder
		for i := range 2000 {
			b.WriteString(strings.Repeat(" ", i) + "a:\n")
		}
		return b.String() + strings.Repeat(" ", 2000) + "b\n"
	}()
)

// hostile are repos that kustomize would leave, URL being that of a server that listens, GIT what makes git run a command.
var hostile = []struct {
	name  string
	files map[string]string
	rule  string // "": it builds, from files of the repo alone
	at    string // where the finding is
	says  string
}{
	{name: "components of Flux", files: map[string]string{
		"mgmt/flux.yaml": hostileFlux + "  components:\n  - GIT\n",
		"base/a.yaml":    goodObject,
	}, rule: render.RuleRemote, at: "mgmt/flux.yaml:10:5", says: "spec.components[0]"},
	{
		name: "components of Flux that may be missing", rule: render.RuleRemote, at: "mgmt/flux.yaml:10:5", says: "spec.components[0]",
		files: map[string]string{
			"mgmt/flux.yaml": hostileFlux + "  components:\n  - GIT\n  ignoreMissingComponents: true\n",
			"base/a.yaml":    goodObject,
		},
	},
	{name: "components of Flux by SSH", files: map[string]string{
		"mgmt/flux.yaml": hostileFlux + "  components: ['x@127.0.0.1:a/b']\n",
		"base/a.yaml":    goodObject,
	}, rule: render.RuleRemote, at: "mgmt/flux.yaml:9:16"},
	{name: "components of Flux outside", files: map[string]string{
		"mgmt/flux.yaml": hostileFlux + "  components: [../../outside]\n",
		"base/a.yaml":    goodObject,
	}, rule: render.RulePath, at: "mgmt/flux.yaml:9:16"},
	{
		name: "components of Flux in the place of another folder", // a folder of that name is there, and kustomize fetches all the same
		files: map[string]string{
			"mgmt/flux.yaml": hostileFlux + "  components: ['x@127.0.0.1:a/b/c']\n", "base/a.yaml": goodObject,
			"base/x@127.0.0.1:a/b/c/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {a: " +
				"b}\n",
		},
		rule: render.RuleRemote, at: "mgmt/flux.yaml:9:16",
	},
	{
		name: "resources", files: base("resources:\n- URL/x.yaml\n"), rule: render.RuleRemote,
		at: "base/kustomization.yaml:2:3", says: "resources[0]",
	},
	{name: "resources by Git", files: base("resources:\n- GIT\n"), rule: render.RuleRemote, at: "base/kustomization.yaml:2:3"},
	{
		name: "resources, upper case", files: base("RESOURCES:\n- URL/x.yaml\n"), rule: render.RuleField, at: "base/kustomization.yaml:1:1",
		says: "write it as resources",
	},
	{name: "resources, long s", files: base("re\u017Fources:\n- URL/x.yaml\n"), rule: render.RuleField, at: "base/kustomization.yaml:1:1"},
	{name: "resources, capital", files: base("Resources:\n- GIT\n"), rule: render.RuleField, at: "base/kustomization.yaml:1:1"},
	{
		name: "resources of a folder below", files: base("resources: [below]\n", "below/kustomization.yaml", "resourceS: [GIT]\n"),
		rule: render.RuleField, at: "base/below/kustomization.yaml:1:1",
	},
	{
		name: "resources, escaped", files: base("resources:\n- \"\\x68ttp://HOST/x.yaml\"\n"), rule: render.RuleRemote,
		at: "base/kustomization.yaml:2:3",
	},
	{
		name: "resources, upper case scheme", files: base("resources:\n- HTTP://HOST/x.yaml\n"), rule: render.RuleRemote,
		at: "base/kustomization.yaml:2:3",
	},
	{
		name: "resources by an alias", files: base("namePrefix: &a GIT\nresources: [*a]\n"), rule: render.RuleRemote,
		at: "base/kustomization.yaml:1:13",
	},
	{name: "resources of a file without ending", files: map[string]string{
		"base/Kustomization": "resources: [URL/x]\n",
		"mgmt/flux.yaml":     hostileFlux,
	}, rule: render.RuleRemote, at: "base/Kustomization:1:13"},
	{name: "resources of the other ending", files: map[string]string{
		"base/kustomization.yml": "resources: [GIT]\n",
		"mgmt/flux.yaml":         hostileFlux,
	}, rule: render.RuleRemote, at: "base/kustomization.yml:1:13"},
	{
		name: "two files", files: base("resources: [a.yaml]\n", "Kustomization", "resources: [GIT]\n", "a.yaml", goodObject),
		rule: render.RuleKustomize, at: "base/Kustomization",
	},
	{name: "two documents", files: base("namePrefix: a\n---\nresources: [GIT]\n"), rule: render.RuleSyntax, at: "base/kustomization.yaml:3:1"},
	{name: "JSON", files: base(`{"resources": ["\u0068ttp://HOST/x"]}`), rule: render.RuleRemote, at: "base/kustomization.yaml:1:16"},
	{name: "a field twice", files: base("resources: []\nresources: [GIT]\n"), rule: render.RuleSyntax, at: "base/kustomization.yaml:2"},
	{name: "bases", files: base("bases: [GIT]\n"), rule: render.RuleRemote, at: "base/kustomization.yaml:1:9"},
	{name: "components", files: base("components: [GIT]\n"), rule: render.RuleRemote, at: "base/kustomization.yaml:1:14"},
	{name: "components, upper case", files: base("COMPONENTS: [GIT]\n"), rule: render.RuleField, at: "base/kustomization.yaml:1:1"},
	{
		name: "a component's resources", files: base("components: [c]\n", "c/kustomization.yaml",
			"apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [GIT]\n"), rule: render.RuleRemote,
		at: "base/c/kustomization.yaml:3:13",
	},
	{
		name: "merge key", files: base("namePrefix: a\n<<: {resources: [GIT]}\n"), rule: render.RuleField,
		at: "base/kustomization.yaml:2:1", says: "merge keys",
	},
	{
		name: "merge key of an anchor", files: base("commonLabels: &a {resources: GIT}\n<<: *a\n"), rule: render.RuleField,
		at: "base/kustomization.yaml:2:1",
	},
	{
		name: "merge key within", files: base("configMapGenerator:\n- name: a\n  <<: {files: [x=URL]}\n"), rule: render.RuleField,
		at: "base/kustomization.yaml:3:3",
	},
	{
		name: "patches", files: base("resources: [a.yaml]\npatches: [{path: URL/p}]\n", "a.yaml", goodObject), rule: render.RuleRemote,
		at: "base/kustomization.yaml:2:18", says: "patches[0].path",
	},
	{
		name: "patches, upper case", files: base("resources: [a.yaml]\npatches: [{PATH: URL/p}]\n", "a.yaml", goodObject), rule: render.RuleField,
		at: "base/kustomization.yaml:2:12",
	},
	{
		name: "patchesJson6902",
		files: base("resources: [a.yaml]\npatchesJson6902: [{path: URL/p, target: {kind: Namespace, name: good, version: v1}}]\n", "a.yaml",
			goodObject), rule: render.RuleRemote, at: "base/kustomization.yaml:2:26",
	},
	{
		name: "patchesStrategicMerge", files: base("resources: [a.yaml]\npatchesStrategicMerge: [URL/p]\n", "a.yaml", goodObject),
		rule: render.RuleRemote, at: "base/kustomization.yaml:2:25",
	},
	{
		name: "replacements", files: base("resources: [a.yaml]\nreplacements: [{path: URL/p}]\n", "a.yaml", goodObject), rule: render.RuleRemote,
		at: "base/kustomization.yaml:2:23",
	},
	{name: "crds", files: base("crds: [URL/c]\n"), rule: render.RuleRemote, at: "base/kustomization.yaml:1:8"},
	{name: "crds that refer to themselves", files: base("resources: [a.yaml]\ncrds: [c.yaml]\n", "a.yaml", goodObject, "c.yaml",
		apiType("A", "A")), rule: render.RuleKustomize, at: "base/kustomization.yaml:2:8", says: "base/c.yaml: the type A refers to itself"},
	{
		name: "crds that refer to one another", files: base("resources: [a.yaml]\ncrds: [c.yaml]\n", "a.yaml", goodObject, "c.yaml",
			apiType("A", "B")+apiType("B", "C")+apiType("C", "B")), rule: render.RuleKustomize, at: "base/kustomization.yaml:2:8",
		says: "refers to itself",
	},
	{
		name: "crds in JSON that refer to themselves", rule: render.RuleKustomize, at: "base/kustomization.yaml:2:8",
		says: "base/c.json: the type A refers to itself",
		files: base("resources: [a.yaml]\ncrds: [c.json]\n", "a.yaml", goodObject, "c.json",
			`{"A": {"schema": {"properties": {"kind": {}, "apiVersion": {}, "metadata": {}, "spec": {"\u0024ref": "A"}}}}}`),
	},
	{
		name: "crds that refer to many", files: base("resources: [a.yaml]\ncrds: [c.yaml]\n", "a.yaml", goodObject, "c.yaml", apiTypes(40, 3)),
		rule: render.RuleKustomize, at: "base/kustomization.yaml:2:8", says: "more than 100000 types",
	},
	{
		name: "crds that go deep", files: base("resources: [a.yaml]\ncrds: [c.yaml]\n", "a.yaml", goodObject, "c.yaml", apiTypes(2000, 1)),
		rule: render.RuleKustomize, at: "base/kustomization.yaml:2:8", says: "more than 100 deep",
	},
	{name: "an object that is deep", files: base("resources: [a.yaml]\n", "a.yaml",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"+deep), rule: render.RuleScreen, at: "base/a.yaml:4", says: "nested too deep"},
	{name: "an object that is deep, in JSON", files: base("resources: [a.txt]\n", "a.txt",
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},`+"\n\"data\": "+strings.Repeat(`{"a":`, 5000)+"1"+
			strings.Repeat("}", 5001)), rule: render.RuleScreen, at: "base/a.txt:2", says: "nested too deep"},
	{name: "an object that is deep, in lines", files: base("resources: [a.yaml]\n", "a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: "+
		"{name: a}\n"+deepLines), rule: render.RuleScreen, at: "base/a.yaml:104", says: "nested too deep"},
	{
		name: "a long text that aliases repeat", rule: render.RuleScreen, at: "base/a.yaml", says: "once its aliases are expanded",
		files: base("resources: [a.yaml]\n", "a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: &a \""+
			strings.Repeat("x", 1<<20)+"\"}\nb: ["+strings.Repeat("*a, ", 100_000)+"]\n"),
	},
	{
		name: "a patch that is deep",
		files: base("resources: [a.yaml]\npatches:\n- patch: |\n"+block(block("apiVersion: v1\nkind: Namespace\nmetadata: {name: good}\n"+deep)),
			"a.yaml", goodObject), rule: render.RuleScreen, at: "base/kustomization.yaml:3:10", says: "nested too deep",
	},
	{name: "a patch in a file that is deep", files: base("resources: [a.yaml]\npatches: [{path: p}]\n", "a.yaml", goodObject, "p",
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: good}\n"+deep), rule: render.RuleScreen, at: "base/p:4", says: "nested too deep"},
	{
		name: "a strategic merge patch that is deep",
		files: base(
			"resources: [a.yaml]\npatchesStrategicMerge:\n- |\n"+block("apiVersion: v1\nkind: Namespace\nmetadata: {name: good}\n"+deep),
			"a.yaml",
			goodObject,
		),
		rule: render.RuleScreen,
		at:   "base/kustomization.yaml:3:3",
		says: "nested too deep",
	},
	{
		name: "a generator that is deep", files: base("generators:\n- |\n" + block(builtin("ConfigMapGenerator", deep))), rule: render.RuleScreen,
		at: "base/kustomization.yaml:2:3", says: "nested too deep",
	},
	{
		name: "a kustomization that is deep", files: base(deep), rule: render.RuleSyntax, at: "base/kustomization.yaml:1",
		says: "nested too deep",
	},
	{
		name: "a patch of Flux that is deep", rule: render.RuleScreen, at: "mgmt/flux.yaml:1", says: "nested too deep",
		files: map[string]string{
			"mgmt/flux.yaml": hostileFlux + "  patches:\n  - patch: |\n" + block(block(block("kind: A\n"+deep))),
			"base/a.yaml":    goodObject,
		},
	},
	{name: "crds as they should be", files: base("resources: [a.yaml]\ncrds: [c.yaml]\n", "a.yaml", goodObject, "c.yaml",
		apiType("A", "B")+apiType("B", "C")+apiType("D", "C"))},
	{name: "openapi", files: base("openapi: {path: URL/o}\n"), rule: render.RuleRemote, at: "base/kustomization.yaml:1:17"},
	{name: "configurations", files: base("configurations: [URL/c]\n"), rule: render.RuleRemote, at: "base/kustomization.yaml:1:18"},
	{
		name: "files of a ConfigMap", files: base("configMapGenerator: [{name: a, files: [\"x=HTTP://HOST/\"]}]\n"), rule: render.RuleRemote,
		at: "base/kustomization.yaml:1:40", says: "configMapGenerator[0].files[0]",
	},
	{
		name: "files of a ConfigMap without a name", files: base("configMapGenerator: [{name: a, files: [URL/x]}]\n"), rule: render.RuleRemote,
		at: "base/kustomization.yaml:1:40",
	},
	{
		name: "envs of a ConfigMap", files: base("configMapGenerator: [{name: a, envs: [URL/x]}]\n"), rule: render.RuleRemote,
		at: "base/kustomization.yaml:1:39",
	},
	{
		name: "env of a ConfigMap", files: base("configMapGenerator: [{name: a, env: URL/x}]\n"), rule: render.RuleRemote,
		at: "base/kustomization.yaml:1:37",
	},
	{
		name: "env of a ConfigMap that has a name as a URL", files: base("configMapGenerator: [{name: a, envs: ['URL/x=y']}]\n"),
		rule: render.RuleRemote, at: "base/kustomization.yaml:1:39",
	},
	{
		name: "files of a Secret", files: base("secretGenerator: [{name: a, files: [x=URL]}]\n"), rule: render.RuleRemote,
		at: "base/kustomization.yaml:1:37",
	},
	{
		name: "envs of a Secret", files: base("secretGenerator: [{name: a, ENVS: [URL]}]\n"), rule: render.RuleField,
		at: "base/kustomization.yaml:1:29",
	},
	{
		name: "generator in place", files: base("generators:\n- |\n" + block(builtin("ConfigMapGenerator", "files: [\"x=HTTP://HOST/\"]"))),
		rule: render.RuleRemote, at: "base/kustomization.yaml:2:3", says: "generators[0]: files[0]",
	},
	{name: "generator in place, escaped", files: base("generators:\n- |\n" +
		block(builtin("ConfigMapGenerator", `files: ["x=\x68ttp://HOST/"]`))), rule: render.RuleRemote, at: "base/kustomization.yaml:2:3"},
	{
		name: "generator in place, upper case", files: base("generators:\n- |\n" + block(builtin("ConfigMapGenerator", "FILES: [x=URL]"))),
		rule: render.RuleField, at: "base/kustomization.yaml:2:3",
	},
	{
		name: "generator in place, merge key", files: base("generators:\n- |\n" + block(builtin("SecretGenerator", "<<: {files: [x=URL]}"))),
		rule: render.RuleRemote, at: "base/kustomization.yaml:2:3",
	},
	{
		name: "generator in place, one line", files: base(
			`generators: ['{apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: a}, env: "URL"}']` + "\n"), rule: render.RuleRemote,
		at: "base/kustomization.yaml:1:14",
	},
	{
		name: "generator in a list",
		files: base("generators:\n- |\n" +
			block("apiVersion: v1\nkind: List\nitems:\n- {apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: a}, files: [x=URL]}\n")),
		rule: render.RuleRemote, at: "base/kustomization.yaml:2:3",
	},
	{
		name: "generator in the second document",
		files: base(
			"generators:\n- |\n" + block(builtin("ConfigMapGenerator", "literals: [a=b]")+"---\n"+builtin("ConfigMapGenerator", "files: [x=URL]")),
		),
		rule: render.RuleRemote,
		at:   "base/kustomization.yaml:2:3",
	},
	{
		name: "generator in a file", files: base("generators: [g.yaml]\n", "g.yaml", builtin("ConfigMapGenerator", "files: [x=URL]")),
		rule: render.RuleRemote, at: "base/g.yaml",
	},
	{name: "generator in a folder", files: base("generators: [g]\n", "g/kustomization.yaml", "resources: [g.yaml]\n", "g/g.yaml",
		builtin("ConfigMapGenerator", "files: [x=URL]")), rule: render.RuleRemote, at: "base/kustomization.yaml:1:14"},
	{
		name: "generator in a folder that puts it together", rule: render.RuleRemote, at: "base/kustomization.yaml:1:14",
		files: base("generators: [g]\n", "g/kustomization.yaml",
			"resources: [g.yaml]\npatches:\n- target: {kind: ConfigMapGenerator}\n  patch: |\n    - {op: add, path: /files, value: [x=URL]}\n",
			"g/g.yaml", builtin("ConfigMapGenerator", "literals: [a=b]")),
	},
	{name: "generator from afar", files: base("generators: [URL/g]\n"), rule: render.RuleRemote, at: "base/kustomization.yaml:1:14"},
	{name: "generator from afar by Git", files: base("generators: [GIT]\n"), rule: render.RuleRemote, at: "base/kustomization.yaml:1:14"},
	{
		name: "generator that needs itself", files: base("generators: [../base]\n"), rule: render.RuleKustomize,
		at: "base/kustomization.yaml:1:14",
	},
	{name: "transformer in place", files: base("resources: [a.yaml]\ntransformers:\n- |\n"+block(builtin("PatchTransformer", "path: URL/p")),
		"a.yaml", goodObject), rule: render.RuleRemote, at: "base/kustomization.yaml:3:3"},
	{name: "transformer in a file", files: base("resources: [a.yaml]\ntransformers: [t.json]\n", "t.json",
		builtin("PatchStrategicMergeTransformer", "paths: [URL/p]"), "a.yaml", goodObject), rule: render.RuleRemote, at: "base/t.json"},
	{
		name: "transformer of JSON patches", files: base("resources: [a.yaml]\ntransformers: [t.yaml]\n", "t.yaml",
			builtin("PatchJson6902Transformer", "path: URL/p\ntarget: {name: good}"), "a.yaml", goodObject),
		rule: render.RuleRemote, at: "base/t.yaml",
	},
	{name: "transformer of replacements", files: base("resources: [a.yaml]\ntransformers: [t.yaml]\n", "t.yaml",
		builtin("ReplacementTransformer", "replacements: [{path: URL/p}]"), "a.yaml", goodObject), rule: render.RuleRemote, at: "base/t.yaml"},
	{name: "transformer of replacements, upper case", files: base("resources: [a.yaml]\ntransformers: [t.yaml]\n", "t.yaml",
		builtin("ReplacementTransformer", "replacements: [{Path: URL/p}]"), "a.yaml", goodObject), rule: render.RuleField, at: "base/t.yaml"},
	{name: "transformer that adds values", files: base("resources: [a.yaml]\ntransformers: [t.yaml]\n", "t.yaml",
		builtin("ValueAddTransformer", "targetFilePath: URL/p"), "a.yaml", goodObject), rule: render.RuleRemote, at: "base/t.yaml"},
	{name: "validator", files: base("resources: [a.yaml]\nvalidators: [t.yaml]\n", "t.yaml", builtin("PatchTransformer", "path: URL/p"),
		"a.yaml", goodObject), rule: render.RuleRemote, at: "base/t.yaml"},
	{name: "chart", files: base("helmCharts: [{name: a, repo: URL}]\n"), rule: render.RuleKustomize, at: "base/kustomization.yaml:1:1"},
	{name: "globals of charts", files: base("helmGlobals: {chartHome: /}\n"), rule: render.RuleKustomize, at: "base/kustomization.yaml:1:1"},
	{
		name: "chart, of old", files: base("helmChartInflationGenerator: [{chartName: a, chartRepoUrl: URL}]\n"), rule: render.RuleKustomize,
		at: "base/kustomization.yaml:1:1",
	},
	{
		name: "chart as a generator", files: base("generators: [g.yaml]\n", "g.yaml", builtin("HelmChartInflationGenerator", "repo: URL")),
		rule: render.RuleKustomize, at: "base/g.yaml", says: "HelmRelease",
	},
	{
		name: "program as a generator", rule: render.RuleKustomize, at: "base/g.yaml",
		files: base("generators: [g.yaml]\n", "g.yaml",
			"apiVersion: example.com/v1\nkind: X\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: "+
				"./run.sh}\n", "run.sh", "#!/bin/sh\n"),
	},
	{
		name: "container as a transformer", rule: render.RuleKustomize, at: "base/kustomization.yaml:1:16",
		files: base("transformers: ['{apiVersion: example.com/v1, kind: X, metadata: {name: a, annotations: {config.kubernetes.io/function: " +
			"\"container: {image: x}\"}}}']\n"),
	},
	{
		name: "absolute", files: base("configMapGenerator: [{name: a, files: [/etc/passwd]}]\n"), rule: render.RulePath,
		at: "base/kustomization.yaml:1:40",
	},
	{
		name: "outside", files: base("configMapGenerator: [{name: a, files: [../../../../../etc/passwd]}]\n"), rule: render.RulePath,
		at: "base/kustomization.yaml:1:40",
	},
	{name: "nothing", files: base("resources: ['']\n"), rule: render.RulePath, at: "base/kustomization.yaml:1:13"},
	{name: "a line end", files: base("resources: [\"a\\nb\"]\n"), rule: render.RulePath, at: "base/kustomization.yaml:1:13"},
	{name: "itself", files: base("resources: [kustomization.yaml]\n"), rule: render.RuleKustomize, at: "base/kustomization.yaml:1:13"},
	{name: "a cycle", files: base("resources: [../base]\n"), rule: render.RuleKustomize, at: "base/kustomization.yaml:1:13"},
	{
		name: "folders of folders", rule: render.RuleScreen, at: "d4/",
		files: doubling(20),
	},
	// What looks like the above, and is in the repo.
	{name: "a file like the host of a Git repository", files: base("resources: [github.com.yaml]\n", "github.com.yaml", goodObject)},
	{name: "generator of files of the repo", files: base("generators: [g.yaml]\n", "g.yaml",
		builtin("ConfigMapGenerator", "files: [x=d/data.txt, d/data.txt]"), "d/data.txt", "text")},
	{name: "generator in a folder, of files of the repo", files: base("generators: [g]\n", "g/kustomization.yaml", "resources: [g.yaml]\n",
		"g/g.yaml", builtin("ConfigMapGenerator", "envs: [data.env]"), "data.env", "a=b\n")},
	{name: "a transformer in a folder below", files: base("resources: [a.yaml]\ntransformers: [t/t.yaml]\n", "a.yaml", goodObject, "t/t.yaml",
		builtin("PatchTransformer", "path: p.yaml\ntarget: {kind: Namespace}"), "p.yaml",
		"- {op: add, path: /metadata/labels, value: {a: b}}\n")},
	{name: "a list without items below", files: base("resources: [below, a.yaml]\nnamePrefix: x-\n", "a.yaml", goodObject,
		"below/kustomization.yaml", "resources: []\n")},
	{name: "an alias", files: base("namePrefix: &a a\nresources: [*a]\n", "a", goodObject)},
}

func base(kustomization string, more ...string) map[string]string {
	files := map[string]string{"mgmt/flux.yaml": hostileFlux, "base/kustomization.yaml": kustomization}
	for i := 0; i < len(more); i += 2 {
		files["base/"+more[i]] = more[i+1]
	}
	return files
}

// doubling are folders of which each names the next one twice.
func doubling(n int) map[string]string {
	files := map[string]string{"mgmt/flux.yaml": hostileFlux, "base/kustomization.yaml": "components: [../d0]\n"}
	for i := range n {
		files[fmt.Sprintf("d%d/kustomization.yaml", i)] = fmt.Sprintf("apiVersion: kustomize.config.k8s.io/v1alpha1\n"+
			"kind: Component\ncomponents: [../d%d, ../d%d/.]\n", i+1, i+1)
	}
	files[fmt.Sprintf("d%d/kustomization.yaml", n)] = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {a: b}\n"
	return files
}

func builtin(kind, fields string) string {
	return "apiVersion: builtin\nkind: " + kind + "\nmetadata: {name: a}\n" + fields + "\n"
}

func block(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}

// Whatever a repo has in a kustomization: nothing is run, nothing is fetched, one finding says where and why, and the rest is rendered.
func TestHostile(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, goodObject)
	}))
	defer server.Close()
	ran := filepath.Join(t.TempDir(), "ran")
	if runtime.GOOS != "windows" { // what is run there is found by other rules, and not found either way
		bin := t.TempDir()
		if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\n: >"+ran+"\nexit 1\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	replacer := strings.NewReplacer("GIT", "'file:///x?ref=--upload-pack=touch%20"+ran+"&timeout=1'", "URL", server.URL, "HOST",
		strings.TrimPrefix(server.URL, "http://"))
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{"fleet.yaml": fleetYAML, "providers/docker/v1/mgmt/else.yaml": strings.Replace(goodObject, "good", "else", 1)}
			for name, content := range c.files {
				if rest, ok := strings.CutPrefix(name, "mgmt/"); ok {
					name = "providers/docker/v1/mgmt/" + rest
				}
				files[name] = replacer.Replace(content)
			}
			asked.Store(0)
			res, err := renderer(t, repoWith(t, files), "").All(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n := asked.Load(); n > 0 {
				t.Errorf("the server was asked %d times", n)
			}
			if _, err := os.Stat(ran); err == nil {
				t.Error("git was run")
				_ = os.Remove(ran)
			}
			names := make([]string, 0, len(res.Objects))
			for _, o := range res.Objects {
				names = append(names, o.ID())
			}
			if !strings.Contains(strings.Join(names, "\n"), "Namespace else") {
				t.Errorf("the rest is not rendered: %q", names)
			}
			if c.rule == "" {
				if len(res.Findings) > 0 || len(names) < 3 {
					t.Errorf("got %q, findings %v", names, res.Findings)
				}
				return
			}
			if len(res.Findings) != 1 {
				t.Fatalf("got %d findings: %v", len(res.Findings), res.Findings)
			}
			f := res.Findings[0]
			if at := strings.TrimPrefix(f.String(), "providers/docker/v1/"); f.Rule != c.rule || !strings.HasPrefix(at, c.at) ||
				!strings.Contains(at+f.Hint, c.says) {
				t.Errorf("got %s %s (%s)", f.Rule, f, f.Hint)
			}
		})
	}
}

// apiType is a type of a file of `crds`, of which a property is of another type.
func apiType(name, ref string) string {
	return name + ": {Schema: {properties: {kind: {}, apiVersion: {}, metadata: {}, spec: {$ref: " + ref + "}}}}\n"
}

// apiTypes are n types, each with several properties of the next.
func apiTypes(n, several int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "T%d: {schema: {properties: {kind: {}, apiVersion: {}, metadata: {}", i)
		for j := range several {
			fmt.Fprintf(&b, ", p%d: {$ref: T%d}", j, i+1)
		}
		b.WriteString("}}}\n")
	}
	return b.String()
}
