package schema

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// A CRD that no API server takes is told of, whether there are objects of its kind or not: with the defaults, too, that its own schema
// refuses.
func TestCheckCRD(t *testing.T) {
	const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.example.com}
spec:
  group: example.com
  names: {kind: Shop, plural: shops, singular: shop, listKind: ShopList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {a: SCHEMA}}
`
	for name, c := range map[string]struct{ schema, want string }{
		"good":                      {`{type: string, enum: [x, z], default: z}`, ""},
		"default of another type":   {`{type: string, default: 3}`, "must be of type string"},
		"default that is no choice": {`{type: string, enum: [x], default: z}`, "supported values"},
		"default with a field that is unknown": {
			`{type: object, properties: {b: {type: string}}, default: {c: x}}`, "must not have unknown fields",
		},
		"default that a rule refuses": {`{type: string, default: z, x-kubernetes-validations: [{rule: "self == 'x'"}]}`, "failed rule"},
		"no type":                     {`{}`, "type: Required value"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(crd, "SCHEMA", c.schema, 1)
			var object map[string]any
			if err := yaml.Unmarshal([]byte(text), &object); err != nil {
				t.Fatal(err)
			}
			err := CheckCRD(t.Context(), "crd.yaml", object)
			s := NewSet()
			if _, err := s.Add("crd.yaml", []byte(text)); err != nil {
				t.Fatal(err)
			}
			shop := map[string]any{"apiVersion": "example.com/v1", "kind": "Shop", "metadata": map[string]any{"name": "a"}}
			_, judged := s.Check(t.Context(), shop)
			if c.want == "" {
				if err != nil || judged != nil {
					t.Errorf("got %v and %v for a CRD that is right", err, judged)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if judged == nil || judged.Error() != err.Error() {
				t.Errorf("its objects say %v, the CRD %v", judged, err)
			}
		})
	}
}
