package schema

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// Defaulted returns a copy of an object with the defaults of its CRD. It returns the object itself if its CRD is not known.
func (s *Set) Defaulted(ctx context.Context, object map[string]any) map[string]any {
	gvk := (&unstructured.Unstructured{Object: object}).GroupVersionKind()
	v := s.compiled(ctx, gvk)
	if v == nil {
		return object
	}
	out := runtime.DeepCopyJSON(object)
	defaulting.Default(out, v.schema)
	return out
}

// compiled returns a version of a CRD, or nil if it is not known.
func (s *Set) compiled(ctx context.Context, gvk kschema.GroupVersionKind) *version {
	known := s.kinds[gvk.GroupKind()]
	if known == nil {
		return nil
	}
	v, err := known.version(ctx, gvk.Version)
	if err != nil {
		return nil
	}
	return v
}

// LacksField tells whether the CRD of a kind has no field at a path. The steps of the path are those of a JSON patch: an index or - is an
// item of a list. The problem has the path to the first unknown step. LacksField returns false for an unknown kind.
func (s *Set) LacksField(ctx context.Context, gvk kschema.GroupVersionKind, path []string) (p Problem, lacks bool) {
	v := s.compiled(ctx, gvk)
	if v == nil {
		return p, false
	}
	at := v.schema
	for i, step := range path {
		if at.XPreserveUnknownFields || at.XEmbeddedResource {
			return p, false
		}
		next, isField := at.Properties[step]
		switch _, err := strconv.Atoi(step); {
		case at.Items != nil && (step == "-" || err == nil):
			at = at.Items
		case isField:
			at = &next
		case at.AdditionalProperties != nil:
			if at = at.AdditionalProperties.Structural; at == nil {
				return p, false
			}
		case at.Type != "object":
			return p, false // it is a value, or a list without an index
		default:
			return unknownField(strings.Join(path[:i+1], "."), step, slices.Sorted(maps.Keys(at.Properties))), true
		}
	}
	return p, false
}
