package render_test

import (
	"fmt"

	"github.com/fleetctl/fleetctl/pkg/render"
)

// hostilePaths lead out of the repo or back to themselves. Then come repos that only look hostile, and build.
var hostilePaths = []hostileRepo{
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
