//go:build integration

package templates_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// crds of what the charts make: files of Go modules.
var crds = map[string][]string{
	"sigs.k8s.io/cluster-api@v1.14.2": {
		"core/config/crd/bases/*.yaml", "bootstrap/kubeadm/config/crd/bases/*.yaml", "controlplane/kubeadm/config/crd/bases/*.yaml",
	},
	"sigs.k8s.io/cluster-api/test@v1.14.0":             {"infrastructure/docker/config/crd/bases/*.yaml"},
	"sigs.k8s.io/cluster-api-provider-aws/v2@v2.13.0":  {"config/crd/bases/*.yaml"},
	"sigs.k8s.io/cluster-api-provider-azure@v1.23.0":   {"config/crd/bases/*.yaml", "config/aso/crds.yaml"},
	"sigs.k8s.io/cluster-api-provider-gcp@v1.13.1":     {"config/crd/bases/*.yaml"},
	"sigs.k8s.io/cluster-api-provider-vsphere@v1.14.0": {"config/default/crd/bases/*.yaml"},
}

// kindOf finds a CRD's kind without parsing it: some are of megabytes.
var kindOf = regexp.MustCompile(`(?m)^    kind: (\w+)$`)

// crdsOf returns the CRDs of kinds. Each kind has to have one.
func crdsOf(t *testing.T, kinds map[string]bool) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	found := map[string]bool{}
	for module, patterns := range crds {
		dir := moduleDir(t, module)
		for _, pattern := range patterns {
			files, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil || len(files) == 0 {
				t.Fatalf("no CRDs in %s of %s (%v)", pattern, module, err)
			}
			for _, file := range files {
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
		}
	}
	for kind := range kinds {
		if !found[kind] {
			t.Errorf("no module has a CRD for %s", kind)
		}
	}
	return out
}

// crd is the CRD without what only its controller's webhook can do: conversion. Of Azure Service Operator's dozen versions it keeps
// the one that the charts use.
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

func moduleDir(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	var download struct{ Dir string }
	if err := json.Unmarshal(out, &download); err != nil {
		t.Fatal(err)
	}
	return download.Dir
}
