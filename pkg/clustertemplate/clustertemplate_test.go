package clustertemplate_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/clustertemplate"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// translate makes a chart of a template.
func translate(template string) (*clustertemplate.Chart, error) {
	return clustertemplate.New(clustertemplate.Options{
		Name: "own", Dir: "charts/own", File: "dir/template.yaml", Content: []byte(template),
		ExampleVersion: "v1.36.3",
	})
}

// rendered is what the chart makes with values, by Helm.
func rendered(t *testing.T, chart *clustertemplate.Chart, values map[string]any) []any {
	t.Helper()
	files := fstest.MapFS{}
	for _, f := range chart.Files {
		files[f.Path] = &fstest.MapFile{Data: f.Content}
	}
	release, err := json.Marshal(map[string]any{
		"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": map[string]any{"name": "demo", "namespace": "demo"},
		"spec": map[string]any{"values": values, "chart": map[string]any{"spec": map[string]any{"chart": "own"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	objects, findings := render.New(files, &v1alpha1.Fleet{}, render.Options{}).Release(release, "charts/own", nil)
	if err := findings.Err(); err != nil {
		t.Fatalf("%v\n%s", err, file(t, chart, "templates/cluster.yaml"))
	}
	var all []any
	for _, o := range objects {
		var object map[string]any
		if err := json.Unmarshal(o.JSON, &object); err != nil {
			t.Fatal(err)
		}
		withoutKeep(object)
		all = append(all, object)
	}
	return all
}

// withoutKeep takes off what the chart adds.
func withoutKeep(object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	if namespace := metadata["namespace"]; namespace == "demo" { // Helm's renderer says it of all
		delete(metadata, "namespace")
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	delete(annotations, "helm.sh/resource-policy")
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}

func file(t *testing.T, chart *clustertemplate.Chart, name string) string {
	t.Helper()
	for _, f := range chart.Files {
		if f.Path == "charts/own/"+name {
			return string(f.Content)
		}
	}
	t.Fatalf("no file %s", name)
	return ""
}

const cluster = `apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata:
  name: ${CLUSTER_NAME}
`

// one is a template with more in a ConfigMap of its own.
func one(more string) string {
	return cluster + "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: more\n" + more
}

// Each way to use a variable is as clusterctl has it, for texts that YAML would take for something else, too.
func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		name, more string
		variables  map[string]string // for clusterctl; nil: it is the chart's own
		values     map[string]any
		want       string // data.x as JSON, where clusterctl is not asked
	}{
		{"plain", "data:\n  x: ${A}\n", map[string]string{"A": "b"}, map[string]any{"a": "b"}, ""},
		{"number", "data:\n  x: ${A:=5}\n", map[string]string{}, map[string]any{}, ""},
		{"large number", "data:\n  x: ${A:=5}\n  y: n-${A:=5}\n", map[string]string{"A": "12345678901"}, map[string]any{"a": 12345678901}, ""},
		{"float", "data:\n  x: ${A:=1.5}\n", map[string]string{}, map[string]any{}, ""},
		{"truth", "data:\n  x: ${A:=true}\n", map[string]string{}, map[string]any{}, ""},
		{"list", "data:\n  x: ${A:=[1, b]}\n", map[string]string{}, map[string]any{}, ""},
		{"list without a default", "data:\n  x: ${A}\n  y: ${A}\n", map[string]string{"A": "[1, b]"}, map[string]any{"a": []any{1, "b"}}, ""},
		{"map without a default", "data:\n  x: ${A}\n", map[string]string{"A": "{b: c}"}, map[string]any{"a": map[string]any{"b": "c"}}, ""},
		// The brace of which clusterctl takes for its own.
		{"map", "data:\n  x: ${A:={}}\n  y: ${B:={b: c}}\n", map[string]string{}, map[string]any{}, ""},
		{"nothing", "data:\n  x: ${A:=}\n  z: ${A:=}zz\n", map[string]string{"A": ""}, map[string]any{}, ""},
		{"empty text", "data:\n  x: ${A:=\"\"}\n", map[string]string{}, map[string]any{}, ""},
		{"double quotes", "data:\n  x: \"a ${A} b\"\n", map[string]string{"A": "1.30"}, map[string]any{"a": "1.30"}, ""},
		{"number as text", "data:\n  x: \"${A:=3}\"\n", map[string]string{}, map[string]any{}, ""},
		{"single quotes", "data:\n  x: 'a ${A} b'\n", map[string]string{"A": "c"}, map[string]any{"a": "c"}, ""},
		{"in brackets", "data:\n  x: [${A:=a,b}, \"${B}\"]\n", map[string]string{"B": "c"}, map[string]any{"b": "c"}, ""},
		{"in braces", "data: {x: ${A}, y: {${A}: 1}}\n", map[string]string{"A": "c"}, map[string]any{"a": "c"}, ""},
		{"key", "data:\n  ${A}: 1\n  b-${A}: 2\n", map[string]string{"A": "c"}, map[string]any{"a": "c"}, ""},
		{"two in one", "data:\n  x: ${A}.${B}\n  y: ${A}-${B}/z\n", map[string]string{"A": "1", "B": "30"}, map[string]any{"a": 1, "b": 30}, ""},
		{"block", "data:\n  x: |\n    a ${A}\n    {{ b }} {{{ c }}} ${A}}\n", map[string]string{"A": "c"}, map[string]any{"a": "c"}, ""},
		{"a brace before", "data:\n  x: |\n    {${A}} {{${A}}}\n", map[string]string{"A": "c"}, map[string]any{"a": "c"}, ""},
		{"folded", "data:\n  x: >-\n    a ${A}\n    b\n", map[string]string{"A": "c"}, map[string]any{"a": "c"}, ""},
		{"several lines", "data:\n  x: a\n    ${A} b\n", map[string]string{"A": "c"}, map[string]any{"a": "c"}, ""},
		{"comment", "data:\n  x: 1 # ${NOBODY} {{ x }}\n", map[string]string{"NOBODY": "c"}, map[string]any{}, ""},
		{"escaped", "data:\n  x: $${A} $B $$\n", map[string]string{}, map[string]any{}, ""},
		{"lower, upper, length", "data:\n  x: ${A,,} ${A^^} n${#A}\n", map[string]string{"A": "aBc"}, map[string]any{"a": "aBc"}, ""},
		{
			"replaced and cut off", "data:\n  x: ${A//./-} ${A#v} ${A%.0} ${A//./}\n",
			map[string]string{"A": "v1.36.0"},
			map[string]any{"a": "v1.36.0"},
			"",
		},
		{"other defaults", "data:\n  x: ${A:=b}\n  y: ${A:=c}\n  z: ${A:-${B}d}\n", map[string]string{"B": "e"}, map[string]any{"b": "e"}, ""},
		{"other defaults, given", "data:\n  x: ${A:=b}\n  y: ${A:=c}\n", map[string]string{"A": "f"}, map[string]any{"a": "f"}, ""},
		{"tag", "data:\n  x: !!str ${A:=5}\n", map[string]string{}, map[string]any{}, ""},
		{"text like a number", "data:\n  x: ${A}\n", nil, map[string]any{"a": "012"}, `"012"`},
		{"text like truth", "data:\n  x: ${A:=b}\n", nil, map[string]any{"a": "no"}, `"no"`},
		{"colon", "data:\n  x: ${A}\n", nil, map[string]any{"a": "b: c # d"}, `"b: c # d"`},
		{"part with a colon", "data:\n  x: y-${A}\n", nil, map[string]any{"a": "b: c # d"}, `"y-b: c # d"`},
		{"quotes in quotes", "data:\n  x: \"a ${A}\"\n", nil, map[string]any{"a": `"b\`}, `"a \"b\\"`},
		{"single quotes in quotes", "data:\n  x: 'a ${A}'\n", nil, map[string]any{"a": "it's"}, `"a it's"`},
		{"lines in a block", "data:\n  x: |\n    a\n    ${A}\n", nil, map[string]any{"a": "b\nc: d"}, `"a\nb\nc: d\n"`},
		{"braces in a value", "data:\n  x: ${A}\n", nil, map[string]any{"a": "{{ b }}"}, `"{{ b }}"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			template := one(c.more)
			chart, err := translate(template)
			if err != nil {
				t.Fatal(err)
			}
			got := byKind(rendered(t, chart, c.values))
			if c.variables == nil {
				data := got[1].(map[string]any)["data"]
				if data == nil {
					data = got[0].(map[string]any)["data"]
				}
				if text, err := json.Marshal(data.(map[string]any)["x"]); err != nil || string(text) != c.want {
					t.Errorf("got %s, want %s (%v)\n%s", text, c.want, err, file(t, chart, "templates/cluster.yaml"))
				}
				return
			}
			c.variables["CLUSTER_NAME"] = "demo"
			if diff := cmp.Diff(byKind(generated(t, template, c.variables)), got); diff != "" {
				t.Errorf("clusterctl -, chart +\n%s\n%s", diff, file(t, chart, "templates/cluster.yaml"))
			}
		})
	}
}

func TestSchema(t *testing.T) {
	chart, err := translate(
		one("data:\n  i: ${I:=3}\n  b: ${B:=false}\n  l: ${L:=[]}\n  s: ${S:=x}\n  any: ${ANY}\n  replicas: ${N}\n  text: \"${TEXT}\"\n  " +
			"both: \"${I:=3}\"\n  m: ${M}\n  part: m-${M}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Required   []string
		Properties map[string]struct{ Type any }
	}
	if err := yaml.Unmarshal([]byte(file(t, chart, "values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	if want := []string{"any", "m", "n", "text"}; !slices.Equal(schema.Required, want) {
		t.Errorf("required %v", schema.Required)
	}
	for name, want := range map[string]any{
		"i": "integer", "b": "boolean", "l": "array", "s": "string", "n": "integer", "text": "string",
		"any": []any{"string", "integer", "number", "boolean", "array", "object"},
		"m":   []any{"string", "integer", "number", "boolean"},
	} {
		if diff := cmp.Diff(want, schema.Properties[name].Type); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	var values map[string]any
	if err := yaml.Unmarshal([]byte(file(t, chart, "values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"i": 3, "b": false, "l": []any{}, "s": "x"}, values); diff != "" {
		t.Error(diff)
	}
}

// What cannot be said in a chart, or is no template of a cluster, is refused with its line.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name, template string
		line           int
		says           string
	}{
		{"part", one("data:\n  y: 1\n  x: ${A:1:2}\n"), 12, "by its position"},
		{"first letter", one("data:\n  x: ${A^}\n"), 11, "no function ^"},
		{"pattern", one("data:\n  x: ${A##*/}\n"), 11, "no pattern"},
		{"first only", one("data:\n  x: ${A/a/b}\n"), 11, "no function /"},
		{"other value", one("data:\n  x: ${A:+b}\n"), 11, "will not guess"},
		{"error", one("data:\n  x: ${A:?give it}\n"), 11, "will not guess"},
		{"inner", one("data:\n  x: ${A:=${B^}}\n"), 11, "no function ^"},
		{"open", one("data:\n  x: ${A\n"), 11, "clusterctl could not read this"},
		{"no name", one("data:\n  x: ${}\n"), 11, "clusterctl could not read this"},
		{"digit", one("data:\n  x: ${1}\n"), 11, "no name of a variable"},
		{"one value", one("data:\n  x: ${A_B}\n  y: ${A__B}\n"), 12, "would be one value"},
		{"taken", one("data:\n  x: ${CONTROL_PLANE}\n"), 11, "would be one value"},
		{"no letters", one("data:\n  x: ${_1}\n"), 11, "no value can be made"},
		{"anchor", one("data:\n  x: &${A} b\n"), 11, "no value"},
		{"lines", one("data:\n  x: ${A:=b\n    c}\n"), 11, "goes over 2 lines"},
		{"lines of its own", one("data:\n  x: y\n# more\n${A}\n---\n# b\n"), 13, "${A} stands for lines of YAML"},
		{"no YAML", one("data:\n  x: [\n"), 11, "no YAML"},
		{"no object", cluster + "---\n- a\n", 6, "no object"},
		{"list", cluster + "---\napiVersion: v1\nkind: List\nitems: []\n", 6, "no List"},
		{"kind as a variable", cluster + "---\napiVersion: v1\nkind: ${K:=Secret}\n", 7, "kind has a variable, ${K:=Secret}"},
		{"version as a variable", cluster + "---\napiVersion: ${V:=v1}\nkind: Secret\n", 6, "apiVersion has a variable, ${V:=v1}"},
		{"part of a kind", cluster + "---\nkind: \"Sec${K}\"\napiVersion: v1\n", 6, "kind has a variable"},
		{"kind by an anchor", cluster + "---\nmetadata: {name: &k \"${K}\"}\nkind: *k\napiVersion: v1\n", 7, "kind has a variable"},
		{"name of the kind", cluster + "---\napiVersion: v1\nkind: ConfigMap\n${K:=kind}: Secret\n", 8, "no plain name"},
		{"merged kind", cluster + "---\napiVersion: v1\nkind: ConfigMap\n<<: {kind: Secret}\n", 8, "no plain name"},
		{"two kinds", cluster + "---\napiVersion: v1\nkind: ConfigMap\nkind: Secret\n", 8, "field kind twice"},
		{"kind in base64", cluster + "---\napiVersion: v1\nkind: !!binary U2VjcmV0\n", 7, "kind is no text"},
		{"list with a variable", cluster + "---\napiVersion: v1\nkind: ${K:=List}\nitems: []\n", 7, "kind has a variable"},
		{"list of Secrets", cluster + "---\napiVersion: v1\nkind: SecretList\nitems: []\n", 6, "no List"},
		{"password", one("data:\n  y: 1\n  x: ${ADMIN_PASSWORD:=hunter2}\n"), 12, "${ADMIN_PASSWORD}: its default looks like a credential"},
		{"token in quotes", one("data:\n  x: \"${JOIN_TOKEN:-abc}\"\n"), 11, "looks like a credential"},
		{"second default", one("data:\n  x: ${CLIENT_SECRET:=}\n  y: ${CLIENT_SECRET:=abc}\n"), 12, "looks like a credential"},
		{"part of a default", one("data:\n  x: ${API_KEY:=a${B}}\n"), 11, "looks like a credential"},
		{"inner default", one("data:\n  x: ${A:=${B_CREDENTIALS:=abc}}\n"), 11, "looks like a credential"},
		{"password as a name, too", one("x:\n  name: ${A_PASSWORD:=b}\n  y: ${A_PASSWORD:=b}\n"), 11, "looks like a credential"},
		{"credential as a name", one("x:\n  name: ${A:=ghp_012345678901234567890123456789012345}\n"), 11, "looks like a credential"},
		{"credential by its look", one("data:\n  x: ${A:=ghp_012345678901234567890123456789012345}\n"), 11, "looks like a credential"},
		{"number of a version", one("data:\n  x: ${KUBERNETES_VERSION:=1.30}\n"), 11, "\"1.30\" is no version of Kubernetes"},
		{"version without v", one("data:\n  x: ${KUBERNETES_VERSION:=1.30.0}\n"), 11, "is no version of Kubernetes"},
		{"two versions", one("data:\n  x: ${KUBERNETES_VERSION:=v1.30.0}\n  y: ${KUBERNETES_VERSION:=v1.31.0}\n"), 11, "no single default"},
		{"other version", one("data:\n  x: ${KUBERNETES_VERSION:=${V}}\n"), 11, "no single default"},
		{"no control plane", one("data:\n  x: ${CONTROL_PLANE_MACHINE_COUNT:=0}\n"), 11, "no whole number from 1 on"},
		{"half a node", one("data:\n  x: ${WORKER_MACHINE_COUNT:=1.5}\n"), 11, "no whole number from 0 on"},
		{"nodes in words", one("data:\n  x: \"${WORKER_MACHINE_COUNT:=two}\"\n"), 11, "no whole number from 0 on"},
		{"far to the right", one("x: |\n" + strings.Repeat(" ", 300) + "${A}\n"), 11, "begins with 300 spaces"},
		{"in each other", one("x: " + strings.Repeat("${A:=", 20) + strings.Repeat("}", 20) + "\n"), 10, "more than 16 variables"},
		{"escapes", one("# a\n# " + strings.Repeat("$$", 5000) + "\n"), 11, "more than 4096 escapes"},
		{"beside", cluster + "--- {a: b}\n", 5, "beside ---"},
		{"no cluster", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n", 1, "has no Cluster"},
		{"two clusters", cluster + "---\n" + cluster, 6, "has 2 Clusters"},
		{"its name", strings.Replace(cluster, "${CLUSTER_NAME}", "mine", 1), 4, "is called mine"},
		{"namespace with an anchor", cluster + "  namespace: &n default\n  labels: {a: *n}\n", 5, "in the namespace default"},
		{"after a namespace", cluster + "  # where\n  namespace: default\n  labels:\n    a: ${A:1:2}\n", 8, "by its position"},
		{"far after one", cluster + "  namespace: default\n---\napiVersion: v1\nkind: ConfigMap\nx: ${A:1:2}\n", 9, "by its position"},
		{"flow", "{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: a}}\n", 1, "is called a"},
		{"empty", "\n \n", 1, "is empty"},
		{"nothing", "# nothing\n", 1, "no objects"},
		{"binary", "a\x00b", 1, "NUL"},
		{"no text", "a\xff", 1, "UTF-8"},
		{"large", strings.Repeat("# a\n", 1<<20), 1, "larger"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := translate(c.template)
			findings, ok := errors.AsType[diag.Findings](err)
			if !ok || len(findings) == 0 {
				t.Fatalf("%v", err)
			}
			if f := findings[0]; f.File != "dir/template.yaml" || f.Line != c.line || !strings.Contains(f.Summary, c.says) {
				t.Errorf("%v", findings)
			}
		})
	}
	_, err := translate(one("data:\n  x: ${A^}\n  y: ${B:1}\n"))
	if findings, ok := errors.AsType[diag.Findings](err); !ok || len(findings) != 2 {
		t.Errorf("not all at once: %v", err)
	}
}

// Whatever namespaces a template names, all objects go into that of the cluster, as clusterctl has it.
func TestNamespaces(t *testing.T) {
	template := cluster + "  namespace: kube-system # of the Cluster\n---\n" +
		"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: ${SPACE}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  namespace: ${SPACE:=a}-${OTHER}\n  name: first\ndata: {a: '${FIRST}'}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default, name: second}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: third\n  namespace: ${NAMESPACE:=default}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: fourth\ndata:\n  namespace: of-its-own\n"
	chart, err := translate(template)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, v := range chart.Variables {
		values = append(values, v.Value)
	}
	if diff := cmp.Diff([]string{"first"}, values); diff != "" {
		t.Error(diff)
	}
	var got []string
	for line := range strings.SplitSeq(file(t, chart, "templates/cluster.yaml"), "\n") {
		if strings.Contains(line, "amespace") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if diff := cmp.Diff([]string{"namespace: {{ .Release.Namespace | quote }}", "namespace: of-its-own"}, got); diff != "" {
		t.Error(diff)
	}
}

// What a chart keeps, and that no Secret is in it.
func TestKept(t *testing.T) {
	template, err := os.ReadFile("testdata/openstack.yaml")
	if err != nil {
		t.Fatal(err)
	}
	chart, err := translate(string(template))
	if err != nil {
		t.Fatal(err)
	}
	text := file(t, chart, "templates/cluster.yaml")
	for document := range strings.SplitSeq(text, "\n---\n") {
		if kept := strings.Contains(document, "helm.sh/resource-policy: keep"); kept == strings.Contains(document, "\nkind: MachineDeployment") {
			t.Errorf("kept %t:\n%s", kept, document)
		}
	}
	if strings.Contains(text, "kind: Secret") || len(chart.Secrets) != 1 || chart.Secrets[0].Name != "${CLUSTER_NAME}-cloud-config" ||
		chart.Secrets[0].Line != 150 {
		t.Errorf("%+v", chart.Secrets)
	}
	if readme := file(t, chart, "README.md"); !strings.Contains(readme, "`${CLUSTER_NAME}-cloud-config` (line 150") ||
		strings.Contains(readme, "dir/") {
		t.Error(readme)
	}
}

// Any template is refused, or made a chart whose files are what Helm and YAML can read.
func FuzzNew(f *testing.F) {
	for _, name := range []string{"openstack.yaml", "metal3.yaml"} {
		content, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(content))
	}
	f.Add(one("data:\n  x: {${A}: '${B}', c: [${C:=a,b}]}\n"))
	f.Fuzz(func(t *testing.T, template string) {
		chart, err := translate(template)
		if err != nil {
			return
		}
		var schema, values map[string]any
		if err := json.Unmarshal([]byte(file(t, chart, "values.schema.json")), &schema); err != nil {
			t.Error(err)
		}
		if err := yaml.Unmarshal([]byte(file(t, chart, "values.yaml")), &values); err != nil {
			t.Error(err)
		}
	})
}
