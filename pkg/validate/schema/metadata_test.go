package schema

import (
	"slices"
	"testing"
)

// TestMetadataPlaces: a problem with a label or an annotation has the place of its key, and not of all metadata.
func TestMetadataPlaces(t *testing.T) {
	const crd = `{
	"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "pools.example.com"},
	"spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Pool", "plural": "pools"}, "versions": [
		{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}
	]}}`
	set := NewSet()
	if _, err := set.Add("crd.json", []byte(crd)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, field, key string
		value            any
		want             string
	}{
		{"a label with a bad value", "labels", "env", "a b", "metadata.labels[env]"},
		{"a label with a bad name", "labels", "a b", "env", "metadata.labels[a b]"},
		{"a label that is a truth", "labels", "env", true, "metadata.labels[env]"},
		{"a label that is a number", "labels", "env", int64(1), "metadata.labels[env]"},
		{"an annotation with a bad name", "annotations", "a b", "x", "metadata.annotations[a b]"},
		{"an annotation that is a list", "annotations", "env", []any{"x"}, "metadata.annotations[env]"},
		{"a good label", "labels", "env", "dev", ""},
	} {
		for _, kind := range [][2]string{{"example.com/v1", "Pool"}, {"v1", "ConfigMap"}} {
			t.Run(c.name+" of a "+kind[1], func(t *testing.T) {
				problems, err := set.Check(t.Context(), map[string]any{
					"apiVersion": kind[0], "kind": kind[1],
					"metadata": map[string]any{"name": "a", "namespace": "b", c.field: map[string]any{"fine": "yes", c.key: c.value}},
				})
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, p := range problems {
					got = append(got, p.Path)
				}
				if c.want == "" && len(got) > 0 || c.want != "" && !slices.Equal(got, []string{c.want}) {
					t.Errorf("Check finds %v (%v), want %q", got, problems, c.want)
				}
			})
		}
	}
}
