package kube

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// For every manifest, the objects have the fields by which the API server identifies them. They are the same after they are written and
// read again.
func FuzzParseYAML(f *testing.F) {
	content, err := os.ReadFile("../../templates/testdata/golden/in-memory-smallest.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Add([]byte("# only a comment\n---\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: List, items: [{apiVersion: a/b, " +
		"kind: C, metadata: {name: d}}]}\n"))
	f.Add(
		[]byte(
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}{"apiVersion":"v1","kind":"Secret","metadata":{"name":"b","generation":3}}`,
		),
	)
	f.Add([]byte("apiVersion: v1\nkind: List\nitems: [null, a, {kind: b}]\n--- # c\napiVersion: a/b/c\nkind: d\nmetadata: {name: 1}\n"))
	f.Fuzz(func(t *testing.T, manifest []byte) {
		objects, err := ParseYAML(manifest)
		if err != nil {
			if objects != nil {
				t.Errorf("%d objects beside an error", len(objects))
			}
			return
		}
		var text bytes.Buffer
		for _, obj := range objects {
			ref := RefOf(obj)
			if ref.Kind == "" || ref.Version == "" || ref.Name == "" || obj.IsList() {
				t.Errorf("%s is no object: %v", ref, obj.Object)
			}
			content, err := yaml.Marshal(obj.Object)
			if err != nil {
				t.Fatal(err)
			}
			text.WriteString("---\n")
			text.Write(content)
		}
		again, err := ParseYAML(text.Bytes())
		if err != nil {
			t.Fatalf("%v\n%s", err, text.Bytes())
		}
		if diff := cmp.Diff(objects, again); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
