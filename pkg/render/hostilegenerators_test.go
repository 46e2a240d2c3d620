package render_test

import (
	"github.com/fleetctl/fleetctl/pkg/render"
)

// hostileGenerators reach outside of the repo by a generator, a transformer, a validator, a chart or a program.
var hostileGenerators = []hostileRepo{
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
}
