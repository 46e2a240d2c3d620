package schema

import (
	"math"
	"reflect"
	"regexp"
	"slices"
	"unicode/utf8"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// acceptor recognizes most valid objects an order of magnitude faster than the API machinery, which builds a validator for every field of
// every object. acceptor never says what is wrong. If it is not sure about an object, the API machinery checks the object.
type acceptor struct {
	kind string
	// unsure: the schema has a rule that only the API machinery understands.
	unsure      bool
	intOrString bool
	anything    bool // every value is valid, and nothing is pruned

	fields   map[string]*acceptor
	others   *acceptor // the schema of fields that are not in fields
	free     bool      // fields without a schema are accepted and kept
	items    *acceptor
	required []string
	// unique are the keys of list items, which no two items may have alike. For a set, isSet is true.
	unique []string
	isSet  bool

	enum     map[string]bool
	pattern  *regexp.Regexp
	min, max *float64
	least    int64 // number of characters, items or fields
	most     int64
}

// newAcceptor compiles the schema of a kind.
func newAcceptor(s *structural.Structural) *acceptor {
	a := acceptorOf(s)
	if a.fields == nil {
		a.fields = map[string]*acceptor{}
	}
	text := &acceptor{kind: "string", most: math.MaxInt64}
	texts := &acceptor{kind: "object", others: text, most: math.MaxInt64}
	if metadata := s.Properties["metadata"]; len(metadata.Properties) > 0 {
		a.unsure = true // rules for names: rare
	}
	a.fields["apiVersion"], a.fields["kind"] = text, text
	a.fields["metadata"] = &acceptor{kind: "object", most: math.MaxInt64, fields: map[string]*acceptor{
		"name": text, "namespace": text, "labels": texts, "annotations": texts,
	}}
	return a
}

func acceptorOf(s *structural.Structural) *acceptor {
	a := &acceptor{kind: s.Type, intOrString: s.XIntOrString, free: s.XPreserveUnknownFields, unsure: s.XEmbeddedResource, most: math.MaxInt64}
	if s.Items != nil {
		a.items = acceptorOf(s.Items)
	}
	if s.AdditionalProperties != nil {
		if s.AdditionalProperties.Structural != nil {
			a.others = acceptorOf(s.AdditionalProperties.Structural)
		}
		a.free = a.free || s.AdditionalProperties.Bool
	}
	if s.ValueValidation != nil && !isEitherType(s) {
		a.constrain(s.ValueValidation)
	}
	a.list(s)
	a.properties(s)
	a.anything = isAnything(s)
	return a
}

// isEitherType tells whether a schema is for an integer or a string, in the redundant form that controller-gen writes, and demands nothing
// else.
func isEitherType(s *structural.Structural) bool {
	is := func(n structural.NestedValueValidation, kind string) bool {
		return reflect.DeepEqual(n, structural.NestedValueValidation{ForbiddenGenerics: structural.Generic{Type: kind}})
	}
	either := s.ValueValidation.AnyOf
	return s.XIntOrString && len(either) == 2 && is(either[0], "integer") && is(either[1], "string") &&
		reflect.DeepEqual(s.ValueValidation, &structural.ValueValidation{AnyOf: either})
}

// isAnything tells whether a field accepts every value, such as the values of a chart.
func isAnything(s *structural.Structural) bool {
	free := structural.Structural{
		Generic: structural.Generic{Description: s.Description}, Extensions: structural.Extensions{XPreserveUnknownFields: true},
	}
	if s.ValueValidation != nil {
		free.ValueValidation = &structural.ValueValidation{}
	}
	return reflect.DeepEqual(s, &free)
}

// properties compiles the fields. A field with a default is never missing after defaulting.
func (a *acceptor) properties(s *structural.Structural) {
	if len(s.Properties) == 0 {
		return
	}
	a.fields = make(map[string]*acceptor, len(s.Properties))
	for name, field := range s.Properties {
		of := acceptorOf(&field)
		a.fields[name] = of
		if field.Default.Object == nil {
			continue
		}
		if !of.accepts(field.Default.Object) || a.most < math.MaxInt64 {
			a.unsure = true
		}
		a.required = slices.DeleteFunc(slices.Clone(a.required), func(r string) bool { return r == name })
	}
}

// list compiles the rules about the items of a list as a whole.
func (a *acceptor) list(s *structural.Structural) {
	if s.XListType == nil {
		return
	}
	switch *s.XListType {
	case "set":
		a.isSet = true
	case "map":
		a.unique = s.XListMapKeys
	}
}

// constrain compiles the rules about the value itself.
func (a *acceptor) constrain(v *structural.ValueValidation) {
	if len(v.AllOf)+len(v.AnyOf)+len(v.OneOf) > 0 || v.Not != nil || v.UniqueItems || v.MultipleOf != nil || v.ExclusiveMaximum ||
		v.ExclusiveMinimum {
		a.unsure = true
		return
	}
	a.required, a.min, a.max = v.Required, v.Minimum, v.Maximum
	switch v.Format {
	case "", "int64", "double":
	case "int32":
		low, high := float64(math.MinInt32), float64(math.MaxInt32)
		if a.min == nil || *a.min < low {
			a.min = &low
		}
		if a.max == nil || *a.max > high {
			a.max = &high
		}
	default:
		a.unsure = true
	}
	for _, limit := range []*int64{v.MinLength, v.MinItems, v.MinProperties} { // each type has one of them
		if limit != nil {
			a.least = max(a.least, *limit)
		}
	}
	for _, limit := range []*int64{v.MaxLength, v.MaxItems, v.MaxProperties} {
		if limit != nil {
			a.most = min(a.most, *limit)
		}
	}
	if len(v.Enum) > 0 {
		a.enum = map[string]bool{}
		for _, one := range v.Enum {
			if text, ok := one.Object.(string); ok {
				a.enum[text] = true
			}
		}
	}
	if v.Pattern != "" {
		var err error
		if a.pattern, err = regexp.Compile(v.Pattern); err != nil {
			a.unsure = true
		}
	}
}

// accepts returns true if a value is certainly valid after defaulting and has no field that would be pruned. It returns false if it is not
// sure.
func (a *acceptor) accepts(value any) bool {
	if a.unsure {
		return false
	}
	if a.anything && value != nil {
		return true
	}
	switch value := value.(type) {
	case string:
		return (a.kind == "string" || a.intOrString) && a.acceptsText(value)
	case int64:
		return (a.kind == "integer" || a.kind == "number" || a.intOrString) && a.acceptsNumber(float64(value))
	case float64:
		return a.kind == "number" && a.acceptsNumber(value)
	case bool:
		return a.kind == "boolean" && a.enum == nil
	case []any:
		return a.acceptsItems(value)
	case map[string]any:
		return a.acceptsFields(value)
	}
	return false // null: a default may take its place
}

func (a *acceptor) acceptsText(value string) bool {
	return (a.enum == nil || a.enum[value]) && a.holds(utf8.RuneCountInString(value)) && (a.pattern == nil || a.pattern.MatchString(value))
}

func (a *acceptor) acceptsNumber(value float64) bool {
	return a.enum == nil && math.Abs(value) <= 1<<53 && (a.min == nil || value >= *a.min) && (a.max == nil || value <= *a.max)
}

func (a *acceptor) acceptsItems(value []any) bool {
	if a.kind != "array" || a.enum != nil || !a.holds(len(value)) || a.items == nil {
		return false
	}
	for _, item := range value {
		if !a.items.accepts(item) {
			return false
		}
	}
	return len(value) < 2 || !a.isSet && a.unique == nil || a.areUnique(value)
}

// areUnique tells whether no two items are alike. It returns false unless all items, or all their keys, are texts.
func (a *acceptor) areUnique(value []any) bool {
	seen := make(map[string]bool, len(value))
	for _, item := range value {
		id, ok := item.(string)
		if !a.isSet {
			fields, _ := item.(map[string]any)
			id, ok = "", true
			for _, name := range a.unique {
				text, isText := fields[name].(string)
				id, ok = id+text+"\x00", ok && isText
			}
		}
		if !ok || seen[id] {
			return false
		}
		seen[id] = true
	}
	return true
}

func (a *acceptor) acceptsFields(value map[string]any) bool {
	if a.kind != "object" || a.enum != nil || !a.holds(len(value)) {
		return false
	}
	for _, name := range a.required {
		if _, ok := value[name]; !ok {
			return false
		}
	}
	for name, inner := range value {
		field := a.fields[name]
		if field == nil {
			field = a.others
		}
		if field != nil && !field.accepts(inner) || field == nil && !a.free {
			return false
		}
	}
	return true
}

// holds tells whether a length is within the limits.
func (a *acceptor) holds(length int) bool { return int64(length) >= a.least && int64(length) <= a.most }
