package render

import "testing"

// The line of a mistake is found where kustomize's error names a text of the file, and no line where it may be one of several.
func TestBuildLine(t *testing.T) {
	const file = `apiVersion: kustomize.config.k8s.io/v1
kind: Kustomization
replicas:
- name: web
  count: 2
configMapGenerator:
- name: settings
  literals:
  - nothing
patches:
- path: a.yaml
- target: {kind: Deployment}
  patch: |
    - op: replce
      path: /spec/a
- target: {kind: Service}
  patch: |-
    - {op: remove, path: /spec/b}
replacements:
- source: {kind: ConfigMap, name: none, fieldPath: data.a}
  targets:
  - select: {kind: Deployment}
    fieldPaths:
    - spec.nothing.here
`
	for _, tc := range []struct {
		message string
		want    int
	}{
		{"Failed to read kustomization file under /apps:\napiVersion for Kustomization should be kustomize.config.k8s.io/v1beta1", 1},
		{"resource with name web does not match a config with the following GVK [Deployment]", 4},
		{"loading KV pairs: literal sources [nothing]: invalid literal source nothing, expected key=value", 9},
		{"Unexpected kind: replce", 14},
		{"replace operation does not apply: doc is missing path: /spec/a: missing value", 15},
		{"error in remove for path: '/spec/b': Unable to remove nonexistent key: b", 18},
		{"nothing selected by ConfigMap.[noVer].[noGrp]/none.[noNs]:data.a", 20},
		{"fieldPath `data.a` is missing for replacement source ConfigMap", 20},
		{`unable to find field "spec.nothing.here" in replacement target`, 24},
		{`no resource matches strategic merge patch "Deployment.v1.apps/wbe.shop": no matches`, 0}, // one of three patches
		{"something else", 0},
	} {
		if got := buildLine([]byte(file), tc.message); got != tc.want {
			t.Errorf("%s: got line %d, want %d", tc.message, got, tc.want)
		}
	}
	const one = "patches:\n- path: a.yaml\n"
	if got := buildLine([]byte(one), `no resource matches strategic merge patch "Deployment.v1.apps/wbe.shop": no matches`); got != 2 {
		t.Errorf("the only patch: got line %d", got)
	}
	if got := buildLine([]byte("patches: [\n"), "Unexpected kind: a"); got != 0 {
		t.Errorf("no YAML: got line %d", got)
	}
}
