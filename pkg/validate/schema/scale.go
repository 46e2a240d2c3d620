package schema

import (
	"fmt"
	"math"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// replicasOf returns the path of the number that the scale subresource of a version sets; nil without this subresource.
func replicasOf(from *apiextensionsv1.CustomResourceDefinitionVersion) []string {
	if from.Subresources == nil || from.Subresources.Scale == nil {
		return nil
	}
	return strings.Split(strings.TrimPrefix(from.Subresources.Scale.SpecReplicasPath, "."), ".")
}

// checkScale checks the number of replicas as an API server does for a kind with a scale subresource. The schema of the kind need not say
// the limits. Another type than an integer is the schema's matter.
func (v *version) checkScale(object map[string]any) field.ErrorList {
	if len(v.replicas) == 0 {
		return nil
	}
	n, found, err := unstructured.NestedInt64(object, v.replicas...)
	if err != nil || !found {
		return nil
	}
	at := field.NewPath(v.replicas[0], v.replicas[1:]...)
	switch {
	case n < 0:
		return field.ErrorList{field.Invalid(at, n, "should be a non-negative integer")}
	case n > math.MaxInt32:
		return field.ErrorList{field.Invalid(at, n, fmt.Sprintf("should be less than or equal to %d", math.MaxInt32))}
	}
	return nil
}
