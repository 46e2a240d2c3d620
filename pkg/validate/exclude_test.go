package validate

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// withSettings is the tests' fleet with spec.validate.
func withSettings(t *testing.T, settings string) map[string]string {
	t.Helper()
	files := fleet(t)
	files["fleet.yaml"] += "  validate:\n" + settings
	return files
}

// What fleet.yaml leaves out has no finding, is counted, and what is left is still checked.
func TestExclude(t *testing.T) {
	for _, pattern := range []string{
		"features/web", "features/web/", "features/*", "**/namespaced", "features/web/namespaced/deployment.yaml",
		"**/deployment.yaml",
	} {
		t.Run(pattern, func(t *testing.T) {
			files := withSettings(t, "    exclude: ["+`"`+pattern+`"`+"]\n")
			files[web] = strings.Replace(files[web], "  replicas: 1", "  replicaz: 1", 1)
			files[widget] = strings.Replace(files[widget], "size: small", "size: smal", 1)
			result := validate(t, files, knownKinds(t))
			f := only(t, result.Findings, RuleValue)
			if f.File != widget {
				t.Errorf("got %s", f)
			}
			if len(result.Excluded) != 1 || result.Excluded[0].Path != pattern || result.Excluded[0].Files == 0 || result.Excluded[0].Objects == 0 ||
				result.Excluded[0].Findings != 1 {
				t.Errorf("excluded: %+v", result.Excluded)
			}
			whole := validate(t, fleet(t), knownKinds(t))
			if result.Objects+result.Excluded[0].Objects != whole.Objects || result.Files+result.Excluded[0].Files != whole.Files {
				t.Errorf("%d objects and %d files beside %+v, of %d and %d", result.Objects, result.Files, result.Excluded[0],
					whole.Objects, whole.Files)
			}
		})
	}
}

// A file that is no YAML, and secrets of a test, may be excluded. An unknown kind is reported only in files that are not excluded.
func TestExcludeWhatCannotBeRead(t *testing.T) {
	files := withSettings(t, "    exclude: [hack, features/web/namespaced/gadget.yaml]\n")
	files["hack/template.yaml"] = "{% if a %}\n"
	files["hack/secret.yaml"] = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: hunter2}\n"
	files["features/web/namespaced/gadget.yaml"] = "apiVersion: gadgets.example.com/v1\nkind: Gadget\nmetadata: {name: a, namespace: platform}\n"
	files["features/web/namespaced/kustomization.yaml"] = strings.Replace(files["features/web/namespaced/kustomization.yaml"],
		"- deployment.yaml", "- deployment.yaml\n- gadget.yaml", 1)
	files[platform+"gadget.yaml"] = "apiVersion: gadgets.example.com/v1\nkind: Gadget\nmetadata: {name: b, namespace: platform}\n"
	if f := only(t, validate(t, files, knownKinds(t)).Findings, RuleUnknownKind); f.File != platform+"gadget.yaml" {
		t.Errorf("got %s", f)
	}
}

// Nothing is left out without a word: not what is not there, and not all.
func TestExcludeTooMuch(t *testing.T) {
	f := only(t, validate(t, withSettings(t, "    exclude: [nowhere]\n"), knownKinds(t)).Findings, RuleUnused)
	if f.File != "fleet.yaml" || !strings.Contains(f.Summary, "exclude[0]") {
		t.Errorf("got %s", f)
	}
	f = only(t, validate(t, withSettings(t, "    exclude: [providers, features, charts]\n"), knownKinds(t)).Findings, RuleNothing)
	if f.Severity != diag.SeverityError || f.File != "fleet.yaml" {
		t.Errorf("got %s %s", f.Severity, f)
	}
	for _, pattern := range []string{".", "*", "**", "/", "../x", "**/*", "[", "", "a\\\\b"} {
		result := validate(t, withSettings(t, "    exclude: [\""+pattern+"\"]\n"), knownKinds(t))
		if result.Errors == 0 {
			t.Errorf("%q is taken", pattern)
		}
	}
}

// CRDs that fleet.yaml names win over others, in any form, and a place without any is reported.
func TestDeclaredCRDs(t *testing.T) {
	files := withSettings(t, "    crds: [hack/crds, hack/all.json]\n    exclude: [hack]\n")
	files[platform+"gadget.yaml"] = "apiVersion: gadgets.example.com/v1\nkind: Gadget\nmetadata: {name: b, namespace: platform}\nspec: {sise: 1}\n"
	files[platform+"gizmo.yaml"] = "apiVersion: gadgets.example.com/v1\nkind: Gizmo\nmetadata: {name: b, namespace: platform}\nspec: {sise: 1}\n"
	files["hack/crds/list.yaml"] = "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(gadgets), "\n", "\n  ") +
		"\n"
	files["hack/all.json"] = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gizmos.gadgets.example.com"},
  "spec": {"group": "gadgets.example.com", "names": {"kind": "Gizmo", "plural": "gizmos"}, "scope": "Namespaced",
    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}}]}}`
	found := map[string]bool{}
	for _, f := range validate(t, files, knownKinds(t)).Findings {
		if f.Rule != RuleUnknownField {
			t.Errorf("not expected: %s [%s]", f, f.Rule)
		}
		found[f.File] = true
	}
	if !found[platform+"gadget.yaml"] || !found[platform+"gizmo.yaml"] {
		t.Errorf("found in %v", found)
	}
	f := only(t, validate(t, withSettings(t, "    crds: [hack/none]\n"), knownKinds(t)).Findings, RuleMissingPath)
	if f.File != "fleet.yaml" {
		t.Errorf("got %s", f)
	}
	only(t, validate(t, withSettings(t, "    crds: [features]\n"), knownKinds(t)).Findings, RuleUnused)
}

// gadgets is a CRD.
const gadgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.gadgets.example.com
spec:
  group: gadgets.example.com
  names: {kind: Gadget, plural: gadgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
`
