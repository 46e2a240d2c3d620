package render_test

import (
	"fmt"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/render"
)

// hostileSizes are small files that kustomize would take gigabytes or hours for, or never finish.
var hostileSizes = []hostileRepo{
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
	{name: "a label that is deep", files: base("resources: [a.yaml]\nlabels: [{pairs: {a: b}, fields: [{path: "+deepPath("/")+
		", create: true}]}]\n", "a.yaml", goodObject), rule: render.RuleScreen, at: "base/kustomization.yaml:2", says: "more than 100 fields"},
	{
		name: "a label that is deep, in other letters", files: base("resources: [a.yaml]\nlabels: [{pairs: {a: b}, fields: [{PATH: "+
			deepPath("/")+", \"cr\\u0065ate\": true}]}]\n", "a.yaml", goodObject), rule: render.RuleScreen, at: "base/kustomization.yaml:2",
		says: "more than 100 fields",
	},
	{
		name: "a replacement that is deep", files: base("resources: [a.yaml]\nreplacements: [{source: {kind: Namespace}, targets: [{select: "+
			"{kind: Namespace}, fieldPaths: ["+deepPath(".")+"], options: {create: true}}]}]\n", "a.yaml", goodObject),
		rule: render.RuleScreen, at: "base/kustomization.yaml:2", says: "more than 100 fields",
	},
	{
		name: "a transformer that is deep", files: base("resources: [a.yaml]\ntransformers: [t.yaml]\n", "a.yaml", goodObject, "t.yaml",
			builtin("LabelTransformer", "labels: {a: b}\nfieldSpecs: [{path: "+deepPath("/")+", create: true}]")),
		rule: render.RuleScreen, at: "base/t.yaml:5", says: "more than 100 fields",
	},
	{
		name: "a configuration that is deep", files: base("resources: [a.yaml]\ncommonLabels: {a: b}\nconfigurations: [c.yaml]\n", "a.yaml",
			goodObject, "c.yaml", "commonLabels: [{path: "+deepPath("/")+", create: true}]\n"),
		rule: render.RuleScreen, at: "base/c.yaml:1", says: "more than 100 fields",
	},
	{name: "a path that is as deep as objects are", files: base("resources: [a.yaml]\nlabels: [{pairs: {a: b}, fields: [{path: metadata/"+
		"annotations/a, create: true}]}]\n", "a.yaml", goodObject)},
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
}

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

// deepPath is a path of fields that are 2,001 levels deep.
func deepPath(separator string) string { return strings.Repeat("a"+separator, 2000) + "a" }
