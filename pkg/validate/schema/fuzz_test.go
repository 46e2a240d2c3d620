package schema

import (
	"strings"
	"testing"
)

// Whatever is in a stream of CRDs: what is known of a CRD without reading it is what reading it says, where the API server would take it;
// and what is kept of a stream says the same as the stream.
func FuzzCRDs(f *testing.F) {
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: as.b\nspec:\n  group: b\n  names:\n    " +
		"kind: A\n    plural: as\n" +
		"  scope: Cluster\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema: {openAPIV3Schema: {type: object, " +
		"x-kubernetes-preserve-unknown-fields: true}}\n"
	f.Add([]byte(crd))
	f.Add([]byte(strings.Replace(crd, "    kind: A\n", "    kind: \"A\" # x\n", 1) + "---\n" + crd))
	f.Add([]byte("# apiextensions.k8s.io/v1 CustomResourceDefinition\r\n---\r\n" + crd + "--- \n{}\n"))
	f.Add([]byte("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinitionList\nitems: [null, {}, {spec: null}]\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		for _, document := range Documents(stream) {
			if !isCRD(document) {
				continue
			}
			read, err := decodeCRD(document)
			group, kindErr := kindOf(document)
			if err != nil || read == nil || kindErr != nil {
				continue
			}
			names := read.Spec.Names
			if accepted := read.Name == names.Plural+"."+read.Spec.Group; accepted && names.Kind != "" &&
				(group.Group != read.Spec.Group || group.Kind != names.Kind) {
				t.Errorf("known as %s, read as %s.%s:\n%s", group, names.Kind, read.Spec.Group, document)
			}
		}
		s, kept := NewSet(), NewSet()
		added, err := s.Add("stream", stream)
		if added < len(s.kinds) {
			t.Errorf("%d CRDs of %d kinds", added, len(s.kinds))
		}
		again, keptErr := kept.Add("kept", OnlyCRDs(stream))
		if again != added || (keptErr == nil) != (err == nil) {
			t.Errorf("%d CRDs (%v); of those that are kept %d (%v)", added, err, again, keptErr)
		}
	})
}
