//go:build integration

package templates_test

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/templates/templatestest"
)

// kindOf finds the kind of a CRD without parsing the CRD, because some CRDs have megabytes.
var kindOf = regexp.MustCompile(`(?m)^    kind: (\w+)$`)

// crdsOf returns the CRDs of kinds. Each kind has to have one.
func crdsOf(t *testing.T, kinds map[string]bool) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	found := map[string]bool{}
	for _, file := range templatestest.CRDFiles(t) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
			kind := kindOf.FindSubmatch(document)
			if kind == nil || !kinds[string(kind[1])] {
				continue
			}
			found[string(kind[1])] = true
			out = append(out, crd(t, document))
		}
	}
	for kind := range kinds {
		if !found[kind] {
			t.Errorf("no module has a CRD for %s", kind)
		}
	}
	return out
}

// crd returns the CRD without conversion, which would need the webhook of its controller. Of the dozen versions of a CRD of Azure Service
// Operator, it keeps the one that the charts use.
func crd(t *testing.T, document []byte) *unstructured.Unstructured {
	t.Helper()
	var out unstructured.Unstructured
	if err := yaml.Unmarshal(document, &out.Object); err != nil {
		t.Fatal(err)
	}
	unstructured.RemoveNestedField(out.Object, "spec", "conversion")
	unstructured.RemoveNestedField(out.Object, "status")
	if !strings.HasSuffix(out.GetName(), ".azure.com") {
		return &out
	}
	versions, _, err := unstructured.NestedSlice(out.Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	versions = slices.DeleteFunc(versions, func(v any) bool {
		version, ok := v.(map[string]any)
		name, _ := version["name"].(string)
		return !ok || name != "v1api20240901" && name != "v1api20200601"
	})
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok {
			version["storage"] = true
		}
	}
	if err := unstructured.SetNestedSlice(out.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	return &out
}
