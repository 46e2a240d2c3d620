package schema

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CheckCRD returns an error if no API server accepts the CRD object, even if there are no objects of its kind: Flux would then apply
// nothing of the CRD's folder. origin names the place of the CRD. The error is the *BrokenError that Check returns for objects of the kind.
// CheckCRD compiles no rules, which takes long. Check compiles the rules of kinds with objects.
func CheckCRD(ctx context.Context, origin string, object map[string]any) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, crd); err != nil {
		return nil //nolint:nilerr // Check reports the field with the wrong type
	}
	for i := range crd.Spec.Versions {
		if _, _, err := shapeOf(ctx, &crd.Spec.Versions[i]); err != nil {
			return brokenCRD(crd.Name, origin, err)
		}
	}
	return nil
}

// brokenCRD is the error of a CRD that can be read.
func brokenCRD(name, origin string, err error) *BrokenError {
	return &BrokenError{Origin: origin, Name: name, Err: fmt.Errorf("compile the CRD %s in %s: %w", name, origin, err)}
}

// shapeOf returns the schema of a version of a CRD in both forms of the API machinery, if an API server accepts the schema and its
// defaults.
func shapeOf(ctx context.Context, from *apiextensionsv1.CustomResourceDefinitionVersion) (
	*apiextensions.JSONSchemaProps, *structural.Structural, error,
) {
	if from.Schema == nil || from.Schema.OpenAPIV3Schema == nil {
		return nil, nil, errors.New("it has no schema")
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(from.Schema.OpenAPIV3Schema,
		internal, nil); err != nil {
		return nil, nil, err
	}
	shape, err := structural.NewStructural(internal)
	if err != nil {
		return nil, nil, err
	}
	path := field.NewPath("openAPIV3Schema")
	if err := structural.ValidateStructural(path, shape).ToAggregate(); err != nil {
		return nil, nil, err
	}
	wrong, err := defaulting.ValidateDefaults(ctx, path, shape, true, true)
	if err == nil {
		err = wrong.ToAggregate()
	}
	if err != nil {
		return nil, nil, err
	}
	return internal, shape, defaulting.PruneDefaults(shape)
}
