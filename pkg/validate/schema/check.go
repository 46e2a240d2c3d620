package schema

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// ErrUnknownKind says that no schema is known for an object's kind.
var ErrUnknownKind = errors.New("no schema is known for this kind")

// Check checks an object with the types of JSON (int64 and float64 for numbers). It returns everything that an API server would refuse when
// the object is created, and the server's warnings. It does not change the object. The error is ErrUnknownKind, or a *BrokenError.
func (s *Set) Check(ctx context.Context, object map[string]any) ([]Problem, error) {
	return s.CheckOwn(ctx, runtime.DeepCopyJSON(object))
}

// CheckOwn is Check for an object that is not used afterwards: CheckOwn adds defaults to it and removes unknown fields.
func (s *Set) CheckOwn(ctx context.Context, object map[string]any) ([]Problem, error) {
	gvk := (&unstructured.Unstructured{Object: object}).GroupVersionKind()
	known := s.kinds[gvk.GroupKind()]
	if known == nil {
		return checkBuiltIn(gvk, object)
	}
	v, err := known.version(ctx, gvk.Version)
	if errors.Is(err, errNotServed) {
		return []Problem{{
			Type: Version, Path: "apiVersion", Summary: fmt.Sprintf("%s has no version %s", gvk.GroupKind(), gvk.Version),
			Hint: "served are: " + strings.Join(known.served(), ", "),
		}}, nil
	}
	if err != nil {
		return nil, err
	}
	judge := v.check
	if v.acceptor.accepts(object) {
		judge = v.checkRest
	}
	problems, err := judge(ctx, object)
	if err != nil {
		return problems, known.brokenBy(err)
	}
	return problems, nil
}

// AcceptsMetadata is for an object that differs from a valid object only in its metadata. It tells whether the object is certainly valid,
// too. It returns false if more has to be checked, such as rules that see the whole object.
func (s *Set) AcceptsMetadata(ctx context.Context, gvk kschema.GroupVersionKind, metadata map[string]any) bool {
	known := s.kinds[gvk.GroupKind()]
	if known == nil {
		return false
	}
	v, err := known.version(ctx, gvk.Version)
	if err != nil || v.warning != "" || v.acceptor.unsure || len(v.schema.XValidations) > 0 {
		return false
	}
	return v.acceptor.fields["metadata"].accepts(metadata) && len(checkMeta(map[string]any{"metadata": metadata}, v.namespaced, nil)) == 0
}

// checkRest checks what the acceptor does not check: name, labels and annotations, and the CEL rules. It changes object.
func (v *version) checkRest(ctx context.Context, object map[string]any) ([]Problem, error) {
	var problems []Problem
	if v.warning != "" {
		problems = append(problems, Problem{Type: Deprecated, Path: "apiVersion", Summary: v.warning})
	}
	for _, e := range append(checkMeta(object, v.namespaced, nil), v.checkScale(object)...) {
		problems = append(problems, fromField(e))
	}
	if v.rules == nil {
		return problems, nil
	}
	defaulting.Default(object, v.schema)
	failed, err := v.checkRules(ctx, object)
	return append(problems, failed...), err
}

// uncompiled is the beginning of the API machinery's message about a rule that it could not compile. The message comes for each object,
// because an API server would have refused the CRD.
const uncompiled = "rule compile"

// checkRules runs the CEL rules of the CRD on an object with its defaults. The error is about rules that do not compile.
func (v *version) checkRules(ctx context.Context, object map[string]any) (problems []Problem, err error) {
	failed, _ := v.rules.Validate(ctx, nil, v.schema, object, nil, celconfig.RuntimeCELCostBudget)
	for _, e := range failed {
		if strings.HasPrefix(e.Detail, uncompiled) {
			if err == nil {
				err = fmt.Errorf("the rule of %s: %s", inItems.ReplaceAllString(e.Field, "[]"), e.Detail)
			}
			continue
		}
		p := fromField(e)
		p.Type = Rule
		problems = append(problems, p)
	}
	return problems, err
}

// inItems matches the index or key of an item in a path, because all items have one schema.
var inItems = regexp.MustCompile(`\[[^\]]*\]`)

// check makes the checks of an API server that creates the object, in its order: unknown fields, metadata, defaults, schema, lists, rules.
// It changes object.
func (v *version) check(ctx context.Context, object map[string]any) ([]Problem, error) {
	var problems []Problem
	malformed, unknownMeta := objectmeta.CoerceWithOptions(nil, object, v.schema, true,
		objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	for _, path := range unknownMeta {
		problems = append(problems, v.unknown(path))
	}
	for _, path := range pruning.PruneWithOptions(object, v.schema, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		problems = append(problems, v.unknown(path))
	}
	if v.warning != "" {
		problems = append(problems, Problem{Type: Deprecated, Path: "apiVersion", Summary: v.warning})
	}
	if malformed != nil {
		if misread := misread(object); len(misread) > 0 {
			return append(problems, misread...), nil
		}
		return append(problems, fromField(malformed)), nil
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, v.schema)
	defaulting.Default(object, v.schema)

	var errs field.ErrorList
	errs = append(errs, checkMeta(object, v.namespaced, nil)...)
	schemaErrs := validation.ValidateCustomResource(nil, object, v.validator)
	errs = append(errs, schemaErrs...)
	errs = append(errs, v.checkScale(object)...)
	errs = append(errs, objectmeta.Validate(nil, object, v.schema, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.schema, object)...)
	for _, e := range errs {
		problems = append(problems, fromField(e))
	}
	if v.rules == nil || blocksRules(schemaErrs) {
		return problems, nil
	}
	failed, err := v.checkRules(ctx, object)
	return append(problems, failed...), err
}

// blocksRules tells whether errors keep the API server from running the rules. Its limits for the cost of rules assume values of the right
// type and size.
func blocksRules(errs field.ErrorList) bool {
	return slices.ContainsFunc(errs, func(e *field.Error) bool {
		switch e.Type { //nolint:exhaustive // the others do not block
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
		return false
	})
}

// unknown is the problem of a field that the schema does not have.
func (v *version) unknown(path string) Problem {
	parent, name := splitLast(path)
	var known []string
	switch at := schemaAt(v.schema, parent); {
	case parent == "metadata":
		known = metaFields()
	case at != nil:
		known = slices.Sorted(maps.Keys(at.Properties))
	}
	return unknownField(path, name, known)
}

// schemaAt returns the schema of the field at path, or nil.
func schemaAt(s *structural.Structural, path string) *structural.Structural {
	for step := range steps(path) {
		if s == nil {
			return nil
		}
		switch {
		case strings.HasPrefix(step, "["):
			s = s.Items
		case s.AdditionalProperties != nil:
			s = s.AdditionalProperties.Structural
		default:
			next, ok := s.Properties[step]
			if !ok {
				return nil
			}
			s = &next
		}
	}
	return s
}
