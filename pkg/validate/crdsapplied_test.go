package validate

import (
	"strings"
	"testing"
)

// A CRD of the repo counts as kustomize reads it, which Flux applies: to kustomize, a plain y and a plain on are texts, and not true as to
// other readers of YAML. A CRD that nobody applies counts as it stands.
func TestCRDsCountAsApplied(t *testing.T) {
	files := fleet(t)
	files[platform+"gadgets.yaml"] = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}
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
              on: {type: string, default: y}
              mode: {type: string, enum: [y, "n"]}
`
	files[platform+"gadget.yaml"] = `apiVersion: example.com/v1
kind: Gadget
metadata: {name: first, namespace: platform}
spec: {mode: y, on: fast}
`
	for _, f := range validate(t, files, knownKinds(t)).Findings {
		if strings.HasPrefix(f.File, platform+"gadget") {
			t.Errorf("%s", f)
		}
	}
}
