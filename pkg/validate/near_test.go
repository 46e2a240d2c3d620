package validate

import (
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/validate/refused"
)

// What works, but is near to a mistake that fields and objects have together, is no error. warns is what may stand there as a warning.
func TestNearToMistakes(t *testing.T) {
	kinds := knownKinds(t)
	for _, test := range []struct{ name, warns, objects string }{
		{
			"a sidecar that an autoscaler counts", "", scaledPods("initContainers: [{name: side, image: a:v1, restartPolicy: Always, "+
				"resources: {requests: {cpu: 1m}}}]", "side"),
		},
		{"a container that a webhook adds", "has no container istio-proxy", scaledPods("hostNetwork: false", "istio-proxy")},
		{
			"an init container that an autoscaler does not count", "has no container side",
			scaledPods("initContainers: [{name: side, image: a:v1, resources: {requests: {cpu: 1m}}}]", "side"),
		},
		{
			"a sidecar without requests", "side of the Deployment", scaledPods("initContainers: [{name: side, image: a:v1, restartPolicy: Always}]",
				"side"),
		},
		{
			"requests of a VerticalPodAutoscaler", "", scaledPods("initContainers: [{name: side, image: a:v1, restartPolicy: Always}]", "side") +
				"---\napiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: a, namespace: near}\nspec: {targetRef: " +
				"{apiVersion: apps/v1, kind: Deployment, name: a}}\n",
		},
		{
			"an autoscaler of another kind", "", `apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: a, namespace: near}
spec: {template: {spec: {containers: [{name: a, image: a:v1}]}}}
---
` + scalerOf("argoproj.io/v1alpha1", "Rollout", "a"),
		},
		{
			"an autoscaler of an old version", "", strings.Replace(scaledPods("hostNetwork: false", "a"), "{apiVersion: apps/v1,",
				"{apiVersion: apps/v1beta2,", 1),
		},
		{
			"a sum of requests with a sidecar", "side of the Deployment", strings.NewReplacer("type: ContainerResource", "type: Resource",
				"containerResource: {container: side, ", "resource: {").Replace(scaledPods(
				"initContainers: [{name: side, image: a:v1, restartPolicy: Always}]", "side")),
		},
		{
			"a name of a variable that Flux fills in", "", `apiVersion: v1
kind: Pod
metadata: {name: a, namespace: near}
spec:
  containers: [{name: a, image: a:v1, env: [{name: "${prefix}_HOST", value: a}], args: [$(A_HOST)]}]
`,
		},
		{
			"one Secret with two kubeconfigs", "", `apiVersion: v1
kind: Secret
metadata: {name: remotes, namespace: near}
stringData: {one: "${one}", two: "${two}"}
---
` + nearRelease("one", "kubeConfig: {secretRef: {name: remotes, key: one}}") +
				nearRelease("two", "kubeConfig: {secretRef: {name: remotes, key: two}}"),
		},
		{
			"two releases of one chart with other names of objects", "each overwrites", nearRelease("one", "values: {fullnameOverride: one}") +
				nearRelease("two", "storageNamespace: default\n  values: {fullnameOverride: two}"),
		},
		{
			"two charts of one name", "", nearRelease("one", "") + strings.Replace(nearRelease("two", "storageNamespace: default"),
				"{kind: HelmRepository, name: charts}", "{kind: HelmRepository, name: others}", 1),
		},
		{"kube-vip behind a name", "", nearVIP("api.example.com, port: 6443", "192.0.2.9", "6443")},
		{"kube-vip with the name of an address", "", nearVIP("192.0.2.8, port: 6443", "api.example.com", "6443")},
		{"kube-vip with a port of its load balancer", "kube-vip has port: 6443", nearVIP("192.0.2.8, port: 8443", "192.0.2.8", "6443")},
		{"kube-vip with an address in another form", "", nearVIP("'2001:db8::8', port: 6443", "2001:db8:0::8", "6443")},
		{"kube-vip with two addresses", "", nearVIP("192.0.2.8, port: 6443", "'192.0.2.8,2001:db8::8'", "6443")},
		{
			"kube-vip for Services alone", "", strings.Replace(nearVIP("192.0.2.8, port: 6443", "192.0.2.9", "6443"), "            env:\n",
				"            env:\n            - {name: cp_enable, value: \"false\"}\n", 1),
		},
		{
			"a key with a slash", "", strings.Replace(nearPatches("/spec/template/metadata/labels/a.b~1c", "'1'",
				"replace /spec/template/metadata/labels/a.b~1c", "'2'"), "spec: {template: {spec: {kubeadm",
				"spec: {template: {metadata: {labels: {a: b}}, spec: {kubeadm", 1),
		},
		{
			"an object around a key with a slash", "", nearPatches(
				"/spec/template/metadata", "{}", "/spec/template/metadata/labels", "{}", "/spec/template/metadata/labels/a.b~1c", "'1'",
				"replace /spec/template/metadata/labels/a.b~1c", "'2'",
			),
		},
		{
			"lists and mappings", "", nearPatches("/spec/template/spec/kubeadmConfigSpec/files", "[]",
				"/spec/template/spec/kubeadmConfigSpec/files/-", "{path: /a, content: a}", "/spec/template/spec/kubeadmConfigSpec/files/0",
				"{path: /b, content: b}", "/spec/template/spec/kubeadmConfigSpec/clusterConfiguration", "{apiServer: {}}",
				"/spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/extraArgs", "[{name: a, value: b}]",
				"/spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/extraArgs/-", "{name: c, value: d}"),
		},
		{"defaults of variables", "", strings.Replace(meantClass(), "  patches:\n", nearVariables+"  patches:\n", 1)},
		{
			"templates of variables", "", strings.Replace(meantClass(), "'{{ .size }}'", `'{{ with .size }}{{ .a }}{{ $.builtin.cluster.name }}`+
				`{{ else with .builtin }}{{ .b }}{{ end }}{{ $x := . }}{{ $x.c }}{{ if hasKey . "d" }}{{ index . "d" }}{{ end }}`+
				`{{ range $k, $v := .builtin }}{{ .e }}{{ $v.f }}{{ end }}{{ dig "a" "b" "c" .builtin }}'`, 1),
		},
		{
			"a patch of a runtime extension before", "", strings.Replace(strings.Replace(meantClass(), "kubeadmConfigSpec/users",
				"kubeadmConfigSpec/clusterConfiguration/apiServer", 1), "  patches:\n",
				"  patches:\n  - {name: first, external: {generatePatchesExtension: a.b}}\n", 1),
		},
	} {
		files := rawRepo()
		files["infra/near.yaml"] = nearNamespace +
			strings.ReplaceAll(test.objects, "namespace: platform", "namespace: near")
		var warned bool
		for _, f := range validate(t, files, kinds).Findings {
			if f.File != "infra/near.yaml" || slices.Contains([]string{RuleForeign, RuleUnknownKind, RulePrune, RuleMissingID}, f.Rule) {
				continue
			}
			if f.Severity == diag.SeverityWarning && test.warns != "" && strings.Contains(f.Summary, test.warns) {
				warned = true
				continue
			}
			t.Errorf("%s: %s [%s] (%s)", test.name, f, f.Rule, f.Hint)
		}
		if !warned && test.warns != "" {
			t.Errorf("%s: no warning", test.name)
		}
	}
}

// Flux finds the objects of health checks by their group and kind, whatever the version.
func TestHealthChecksOfAnyVersion(t *testing.T) {
	files := rawRepo()
	files["clusters/mgmt/infra.yaml"] += `  healthChecks:
  - {apiVersion: helm.toolkit.fluxcd.io/v2beta1, kind: HelmRelease, name: a, namespace: b}
  - {apiVersion: apps/v1beta2, kind: Deployment, name: a, namespace: b}
  healthCheckExprs:
  - {apiVersion: cluster.x-k8s.io/v1alpha4, kind: Cluster, current: "has(status.a) && status.b.all(c, c.d != 'A' || c.e == 'True')"}
  - {apiVersion: example.com/v1, kind: Widget, current: "status.?a.orValue('') == 'b' && data['a'].lowerAscii() == sets.contains([1], [1])"}
`
	for _, f := range validate(t, files, knownKinds(t)).Findings {
		if f.File == "clusters/mgmt/infra.yaml" {
			t.Errorf("%s [%s] (%s)", f, f.Rule, f.Hint)
		}
	}
}

// A chart grants what any version of it needed, and a rule may name a resource beside a kind.
func TestGrantsThatWork(t *testing.T) {
	for _, test := range []struct {
		template, resources string
		wrong               bool
	}{
		{"", "Deployment", true},
		{"", "Deployment deployments", false},
		{"", "pods/log Deployment", false},
		{"", "Deployment StatefulSet", true},
		{"templates/role.yaml", "Deployment", false},
	} {
		var resources []any
		for resource := range strings.FieldsSeq(test.resources) {
			resources = append(resources, resource)
		}
		var found []string
		role := &render.Object{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role", Name: "a", Template: test.template}
		refused.Judge(role, map[string]any{
			"metadata": map[string]any{"name": "a"},
			"rules":    []any{map[string]any{"apiGroups": []any{"", "apps"}, "resources": resources, "verbs": []any{"get"}}},
		}, func(field, summary, hint string) { found = append(found, field+": "+summary) })
		if len(found) > 0 != test.wrong {
			t.Errorf("%q in %q: found %q", test.resources, test.template, found)
		}
	}
}

func scalerOf(version, kind, container string) string {
	return `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: a, namespace: near}
spec:
  maxReplicas: 3
  scaleTargetRef: {apiVersion: ` + version + `, kind: ` + kind + `, name: a}
  metrics:
  - type: ContainerResource
    containerResource: {container: ` + container + `, name: cpu, target: {type: Utilization, averageUtilization: 80}}
`
}

// scaledPods is a Deployment, and an autoscaler of one of its containers.
func scaledPods(more, container string) string {
	return `apiVersion: apps/v1
kind: Deployment
metadata: {name: a, namespace: near}
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      ` + more + `
      containers: [{name: a, image: a:v1, resources: {limits: {cpu: 1}}}]
---
` + scalerOf("apps/v1", "Deployment", container)
}

func nearRelease(name, more string) string {
	return `---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: ` + name + `, namespace: near}
spec:
  interval: 1h
  releaseName: same
  targetNamespace: near
  chart: {spec: {chart: a, sourceRef: {kind: HelmRepository, name: charts}}}
  ` + more + "\n"
}

// nearVIP is a cluster of vSphere with an address, and kube-vip with another one.
func nearVIP(host, address, port string) string {
	_, cluster, _ := strings.Cut(vspherePair(), "---\n")
	return strings.NewReplacer("host: 192.0.2.8, port: 6443", "host: "+host, "value: 192.0.2.8", "value: "+address, `value: "6443"`,
		`value: "`+port+`"`).Replace(cluster)
}

// nearPatches is the ClusterClass of meantClass with other changes: paths and values in turn.
func nearPatches(changes ...string) string {
	var b strings.Builder
	for pair := range slices.Chunk(changes, 2) {
		op, path, is := strings.Cut(pair[0], " ")
		if !is {
			op, path = "add", pair[0]
		}
		b.WriteString("      - {op: " + op + ", path: " + path + ", value: " + pair[1] + "}\n")
	}
	return strings.Replace(meantClass(), "      jsonPatches:\n", "      jsonPatches:\n"+b.String(), 1)
}

const nearVariables = `  - {name: none, required: false, schema: {openAPIV3Schema: {type: string, default: ""}}}
  - {name: port, required: false, schema: {openAPIV3Schema: {x-kubernetes-int-or-string: true, default: 80}}}
  - {name: portName, required: false, schema: {openAPIV3Schema: {x-kubernetes-int-or-string: true, default: http}}}
  - {name: ratio, required: false, schema: {openAPIV3Schema: {type: number, default: 1}}}
  - name: whole
    required: false
    schema:
      openAPIV3Schema:
        type: object
        default: {b: x}
        required: [b]
        properties: {a: {type: string, default: c}, b: {type: string, enum: [x, "y"]}}
        x-kubernetes-validations: [{rule: "self.b == 'x' || self.b == oldSelf.b"}, {rule: "has(self.b)"}]
  - {name: free, required: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true, default: {a: [1]}}}}
  - {name: labels, required: false, schema: {openAPIV3Schema: {type: object, additionalProperties: {type: string}, default: {a/b: c}}}}
  - {name: secret, required: false, schema: {openAPIV3Schema: {type: string, format: byte, minLength: 1, default: YQ==, example: Yg==}}}
`

const nearNamespace = `apiVersion: v1
kind: Namespace
metadata: {name: near}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: near}
spec: {interval: 1h, url: "https://charts.example.com"}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: others, namespace: near}
spec: {interval: 1h, url: "https://others.example.com"}
---
`
