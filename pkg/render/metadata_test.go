package render

import (
	"bytes"
	"testing"
)

// TestMetadataOfAllShapes compares the reader of metadata with the reader of whole objects.
func TestMetadataOfAllShapes(t *testing.T) {
	t.Parallel()
	labels, annotations := map[string]string{"team": "a<b", "app": "x"}, map[string]string{"note": "\u2028"}
	for _, src := range []string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: b\n  labels: {team: other, z: \"<1>\"}\ndata: {b: \"1\", a: " +
			"'{\"metadata\":{}}'}\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: null, annotations: {}}\ndata: {\"q\\\"uote\": x}\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: [1], generation: 9007199254740993}\nspec: {n: 9007199254740993, f: 1.5}\n",
		"apiVersion: v1\n\"a\\\"b\": {}\nkind: ConfigMap\nmetadata: {name: a, \"x\\\\y\": 1}\n",
	} {
		objects, findings := parse("a.yaml", []byte(src))
		if findings != nil || len(objects) != 1 {
			t.Fatalf("%s: %v", src, findings)
		}
		before := bytes.Clone(objects[0].json)
		got, err := withMetadata(objects, labels, annotations)
		if err != nil {
			t.Fatal(err)
		}
		want, err := objects[0].with(func(fields map[string]any) {
			metadata := fields["metadata"].(map[string]any)
			for field, more := range map[string]map[string]string{"labels": labels, "annotations": annotations} {
				there, _ := metadata[field].(map[string]any)
				if there == nil {
					there = map[string]any{}
				}
				for name, value := range more {
					there[name] = value
				}
				metadata[field] = there
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got[0].json, want.json) || got[0].identity != want.identity || got[0].source != want.source {
			t.Errorf("%s:\n%s\nwant\n%s", src, got[0].json, want.json)
		}
		if !bytes.Equal(objects[0].json, before) {
			t.Errorf("%s: the object itself was changed", src)
		}
	}
}
