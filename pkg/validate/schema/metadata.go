package schema

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// atKey moves an error about a map of texts to the key that it is about. The API machinery tells only the key or the value.
func atKey(e *field.Error, at *field.Path, texts map[string]string) {
	bad, ok := e.BadValue.(string)
	if !ok || e.Field != at.String() {
		return
	}
	if _, is := texts[bad]; is {
		e.Field = at.Key(bad).String()
		return
	}
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		if texts[key] == bad {
			e.Field = at.Key(key).String()
			return
		}
	}
}

// misread returns a problem for each label and annotation whose value is no text, of which the API machinery tells neither name nor place.
func misread(object map[string]any) []Problem {
	var problems []Problem
	metadata, _ := object["metadata"].(map[string]any)
	for _, name := range []string{"annotations", "labels"} {
		texts, _ := metadata[name].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(texts)) {
			found := ""
			switch texts[key].(type) {
			case string, nil:
				continue
			case bool:
				found = "bool"
			case []any:
				found = "array"
			case map[string]any:
				found = "object"
			}
			problems = append(problems, Problem{
				Type: WrongType, Path: field.NewPath("metadata", name).Key(key).String(),
				Summary: "found " + described(found) + ", " + expected(reflect.TypeFor[string]()),
			})
		}
	}
	return problems
}
