package validate

import (
	"testing"

	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/validate/schema"
)

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: templates.example.com
spec:
  group: example.com
  names: {kind: Template, plural: templates}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: string, enum: [small, large]}}}
`

// The faults of an object are found even after other valid objects of the same shape.
func TestAccepted(t *testing.T) {
	s := &schemas{Set: schema.NewSet()}
	if n, err := s.Add("crd.yaml", []byte(crd)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	judged := func(like *accepted, name, rest string) (known bool, findings int) {
		o := &object{Object: &render.Object{
			APIVersion: "example.com/v1", Kind: "Template", Namespace: "a", Name: name, Template: "charts/x/templates/x.yaml",
			JSON: []byte(`{"apiVersion":"example.com/v1","kind":"Template","metadata":{"name":"` + name + `","namespace":"a"` + rest + `}`),
		}}
		known = like.has(t.Context(), o, s)
		o.judge(t.Context(), s, like)
		return known, len(o.findings)
	}
	const small = `},"spec":{"size":"small"}`
	var like accepted
	for _, tt := range []struct {
		name, rest string
		known      bool
		findings   int
	}{
		{"a", small, false, 0},
		{"b", small, true, 0},
		{"c", `,"labels":{"a":"b"}` + small, true, 0},
		{"C_", small, false, 1},
		{"d", `,"labels":{"a":"b c"}` + small, false, 1},
		{"d", `,"lables":{"a":"b"}` + small, false, 1},
		{"e", `},"spec":{"size":"middle"}`, false, 1},
		{"f", `},"spec":{"size":"middle"}`, false, 1},
		{"g", `},"spec":{"size":"small"},"sped":{}`, false, 1},
		{"h", small, true, 0},
	} {
		if known, findings := judged(&like, tt.name, tt.rest); known != tt.known || findings != tt.findings {
			t.Errorf("%s%s: known %t, %d findings", tt.name, tt.rest, known, findings)
		}
	}
}
