package views

import (
	"reflect"
	"slices"
)

// advising are the fields of results with commands for the reader: hints, notes, and next steps.
var advising = []string{"Hint", "Next", "Notes", "LeftAlone", "Do"}

// advise completes the commands in the advice of a result, for people and for programs alike. It changes data in place, so the caller must
// not share data.
func advise(data any, complete func(text string) string) {
	adviseIn(reflect.ValueOf(data), complete, false)
}

func adviseIn(v reflect.Value, complete func(text string) string, isAdvice bool) {
	switch v.Kind() { //nolint:exhaustive // the others hold no text
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			adviseIn(v.Elem(), complete, isAdvice)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				adviseIn(v.Field(i), complete, slices.Contains(advising, field.Name))
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			adviseIn(v.Index(i), complete, isAdvice)
		}
	case reflect.String:
		if isAdvice && v.CanSet() {
			v.SetString(complete(v.String()))
		}
	}
}
