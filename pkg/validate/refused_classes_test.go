package validate

import (
	"strings"
	"testing"
)

// What Cluster API's webhook refuses of the variables and patches of a ClusterClass.
func TestRefusedClasses(t *testing.T) {
	const (
		class = `apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: quick}
spec:
  infrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: DevClusterTemplate, name: quick}}
  controlPlane:
    templateRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: KubeadmControlPlaneTemplate, name: cp}
    machineInfrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: DevMachineTemplate, name: cp}}
  workers:
    machineDeployments:
    - class: default-worker
      bootstrap: {templateRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: KubeadmConfigTemplate, name: w}}
      infrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: DevMachineTemplate, name: w}}
`
		machines  = `apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: DevMachineTemplate, matchResources: `
		plane     = machines + `{controlPlane: true}`
		variables = `variables: [{name: image, schema: {openAPIV3Schema: {type: string}}}], `
		add       = `{op: add, path: /spec/x, value: 1}`
	)
	patch := func(selector, change string) string {
		return variables + `patches: [{name: a, definitions: [{selector: {` + selector + `}, jsonPatches: [` + change + `]}]}]`
	}
	for _, test := range []struct{ spec, want string }{
		{patch(plane, add), ""},
		{patch(plane, `{op: add, path: /spec/x/-, valueFrom: {variable: "image.a[0]"}}, {op: add, path: /spec/x/0, value: null}`), ""},
		{patch(plane, `{op: replace, path: /spec/x, valueFrom: {variable: builtin.cluster.name}}`), ""},
		{patch(plane, `{op: remove, path: /spec/x}`), ""},
		{patch(machines+`{machineDeploymentClass: {names: [default-worker, "*", "default-*", "*-worker"]}}`, add), ""},
		{patch(`apiVersion: "${x}", kind: A, matchResources: {controlPlane: true}`, add), ""},
		{`patches: [{name: a, external: {generatePatchesExtension: x}}]`, ""},
		{`variables: [{name: a}, {name: a}]`, "two variables a"},
		{`variables: [{name: builtin}]`, "Cluster API has variables of this name"},
		{`variables: [{name: a.b}]`, "has a dot"},
		{`patches: [{name: a}]`, "changes nothing"},
		{
			`patches: [{name: a, external: {generatePatchesExtension: x}}, {name: a, external: {generatePatchesExtension: x}}]`,
			"two patches a",
		},
		{
			`patches: [{name: a, external: {generatePatchesExtension: x}, definitions: [{selector: {` + plane + `}}]}]`,
			"together with definitions",
		},
		{patch(machines+`{}`, add), "selects no part"},
		{patch(machines+`{infrastructureCluster: true}`, add), "no such template"},
		{patch(strings.Replace(plane, "v1beta2", "v1beta1", 1), add), "the templates DevMachineTemplate of this class are not of"},
		{patch(machines+`{machineDeploymentClass: {names: [gpu]}}`, add), "no class gpu of machineDeployments"},
		{patch(machines+`{machinePoolClass: {names: ["*"]}}`, add), "no class * of machinePools"},
		{patch(plane, `{op: add, path: /metadata/x, value: 1}`), "does not begin with /spec"},
		{patch(plane, `{op: replace, path: /spec/x/0, value: 1}`), "no number of an item"},
		{patch(plane, `{op: add, path: /spec/x/2, value: 1}`), "only be added as the first one"},
		{patch(plane, `{op: add, path: /spec/x}`), "it has no value"},
		{patch(plane, `{op: add, path: /spec/x, value: 1, valueFrom: {variable: image}}`), "together with value"},
		{patch(plane, `{op: add, path: /spec/x, valueFrom: {variable: image, template: a}}`), "together with template"},
		{patch(plane, `{op: add, path: /spec/x, valueFrom: {variable: imgae}}`), "has no variable imgae"},
		{patch(plane, `{op: add, path: /spec/x, valueFrom: {template: "{{ .image | nothing }}"}}`), "function"},
		{`patches: [{name: a, enabledIf: "{{ if }}", external: {generatePatchesExtension: x}}]`, "enabledIf"},
	} {
		var lines strings.Builder
		lines.WriteString(class)
		for _, field := range []string{"variables: ", "patches: "} {
			if at := strings.Index(test.spec, field); at >= 0 {
				text := strings.TrimSuffix(strings.TrimSpace(test.spec[at:]), ",")
				if end := strings.Index(text, ", patches: "); end > 0 {
					text = text[:end]
				}
				lines.WriteString("  " + text + "\n")
			}
		}
		got := refusedIn(t, lines.String())
		switch {
		case test.want == "" && len(got) > 0:
			t.Errorf("%s: %q", test.spec, got)
		case test.want != "" && (len(got) != 1 || !strings.Contains(got[0], test.want)):
			t.Errorf("%s: %q, want %q", test.spec, got, test.want)
		}
	}
}
