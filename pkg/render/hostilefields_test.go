package render_test

import (
	"github.com/fleetctl/fleetctl/pkg/render"
)

// hostileFields name something outside of the repo in a field of a kustomization.
var hostileFields = []hostileRepo{
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
	{name: "openapi", files: base("openapi: {path: URL/o}\n"), rule: render.RuleRemote, at: "base/kustomization.yaml:1:17"},
	{name: "configurations", files: base("configurations: [URL/c]\n"), rule: render.RuleRemote, at: "base/kustomization.yaml:1:18"},
}
