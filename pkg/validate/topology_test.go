package validate

import (
	"strings"
	"testing"
)

const topologyClass = `apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: quick, namespace: shop}
spec:
  controlPlane:
    templateRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: KubeadmControlPlaneTemplate, name: cp}
  infrastructure:
    templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: DevClusterTemplate, name: quick}
  variables:
  - name: registry
    required: true
    schema: {openAPIV3Schema: {type: string, minLength: 3, enum: [a.example.com, b.example.com]}}
  - name: size
    required: true
    schema: {openAPIV3Schema: {type: string, default: small}}
  - name: count
    schema: {openAPIV3Schema: {type: integer, minimum: 1, maximum: 5}}
  - name: proxy
    schema:
      openAPIV3Schema:
        type: object
        required: [url]
        properties: {url: {type: string}, not: {type: array, items: {type: string}}}
        x-kubernetes-validations: [{rule: "self.url != 'x'", message: x is none}]
  - name: strange
    schema: {openAPIV3Schema: {type: object, properties: {b: {type: string}}, x-kubernetes-validations: [{rule: self.c.d}]}}
`

// A Cluster's variables are those that its ClusterClass has, with values of their schemas. Cluster API's webhook refuses any other.
func TestTopologies(t *testing.T) {
	const (
		bare     = `classRef: {name: quick}`
		sound    = bare + `, variables: [{name: registry, value: a.example.com}`
		external = "  patches: [{name: x, external: {discoverVariablesExtension: x.y}}]\n"
	)
	for name, test := range map[string]struct {
		topology, class string
		want            []string
	}{
		"sound": {topology: sound + `, {name: count, value: 3}, {name: proxy, value: {url: u}}]`},
		"overridden": {topology: sound + `], controlPlane: {variables: {overrides: [{name: count, value: 2}]}},
			workers: {machineDeployments: [{class: a, name: b, variables: {overrides: [{name: count, value: 1}]}}]}`},
		"from Flux": {topology: bare + `, variables: [{name: registry, value: "${registry}"}, {name: "${name}", value: 1}]`},
		"no schema": {topology: sound + `, {name: strange, value: {b: x}}]`}, // the class is refused, not the value
		"even":      {topology: sound + `], controlPlane: {replicas: 2}`, want: []string{"2 is even"}},
		"odd":       {topology: sound + `], controlPlane: {replicas: 3}`},
		"etcd elsewhere": {
			topology: sound + `], controlPlane: {replicas: 2}`,
			class:    "  patches: [{name: external-etcd, external: {generatePatchesExtension: x}}]\n",
		},
		"declared elsewhere": {topology: sound + `, {name: other, value: 1}]`, class: external},
		"missing":            {topology: bare, want: []string{"requires the variable registry"}},
		"misspelt":           {topology: sound + `, {name: conut, value: 1}]`, want: []string{"has no variable conut"}},
		"before v1beta2": {
			topology: `class: quick, variables: [{name: registry, value: a.example.com}, {name: conut, value: 1}]`,
			want:     []string{"has no variable conut"},
		},
		"of a type":   {topology: sound + `, {name: count, value: a}]`, want: []string{"variables[1].value: the ClusterClass quick"}},
		"of a list":   {topology: bare + `, variables: [{name: registry, value: c.example.com}]`, want: []string{"supported values"}},
		"too large":   {topology: sound + `, {name: count, value: 9}]`, want: []string{"less than or equal to 5"}},
		"a field":     {topology: sound + `, {name: proxy, value: {url: u, ulr: u}}]`, want: []string{"value.ulr"}},
		"lacks one":   {topology: sound + `, {name: proxy, value: {}}]`, want: []string{"value.url"}},
		"a rule":      {topology: sound + `, {name: proxy, value: {url: x}}]`, want: []string{"x is none"}},
		"given twice": {topology: sound + `, {name: registry, value: b.example.com}]`, want: []string{"a value already"}},
		"in overrides": {
			topology: sound + `], controlPlane: {variables: {overrides: [{name: count, value: 7}]}},
				workers: {machinePools: [{class: a, name: b, variables: {overrides: [{name: none, value: 1}]}}]}`,
			want: []string{"controlPlane.variables.overrides[0].value", "machinePools[0].variables.overrides[0].name"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := rawRepo()
			files["infra/class.yaml"] = topologyClass + test.class
			files["infra/plane.yaml"] = "apiVersion: controlplane.cluster.x-k8s.io/v1beta2\nkind: KubeadmControlPlaneTemplate\n" +
				"metadata: {name: cp, namespace: shop}\nspec: {template: {spec: {kubeadmConfigSpec: {format: cloud-config}}}}\n"
			files["infra/cluster.yaml"] = "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: one, namespace: shop}\n" +
				"spec: {topology: {" + test.topology + "}}\n"
			var got []string
			for _, f := range ofRule(validate(t, files, knownKinds(t)).Findings, RuleRefused) {
				if f.File == "infra/cluster.yaml" {
					got = append(got, f.Summary)
				}
			}
			if len(got) != len(test.want) {
				t.Fatalf("findings %q, want %q", got, test.want)
			}
			for i, want := range test.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("%q does not say %q", got[i], want)
				}
			}
		})
	}
}
