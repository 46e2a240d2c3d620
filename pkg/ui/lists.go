package ui

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// withLists returns a result in which a list or map that is nil is empty, so that a program gets [] or {} and not null: `jq '.clusters[]'`
// fails on null. It copies what it changes. Types with a form of their own, and manifests (maps of anything), stay as they are, because a
// null in them has a meaning.
func withLists(result any) any {
	if result == nil {
		return nil
	}
	return filled(reflect.ValueOf(result)).Interface()
}

func filled(v reflect.Value) reflect.Value {
	t := v.Type()
	if hasForm(t) {
		return v
	}
	switch t.Kind() { //nolint:exhaustive // the others hold no lists
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		return filled(v.Elem())
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(t.Elem())
		out.Elem().Set(filled(v.Elem()))
		return out.Convert(t)
	case reflect.Struct:
		return filledStruct(v)
	case reflect.Slice:
		return filledSlice(v)
	case reflect.Map:
		return filledMap(v)
	}
	return v
}

func filledStruct(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	fillFields(out)
	return out
}

func fillFields(v reflect.Value) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		_, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case strings.Contains(options, "omit") && v.Field(i).IsZero():
		case field.IsExported():
			v.Field(i).Set(filled(v.Field(i)))
		case field.Anonymous && field.Type.Kind() == reflect.Struct: // JSON has its exported fields
			fillFields(v.Field(i))
		}
	}
}

func filledSlice(v reflect.Value) reflect.Value {
	switch elem := v.Type().Elem().Kind(); {
	case elem == reflect.Uint8 || elem == reflect.Interface && !v.IsNil():
		return v // JSON writes bytes as a text
	case v.IsNil():
		return reflect.MakeSlice(v.Type(), 0, 0)
	}
	out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	for i := range v.Len() {
		out.Index(i).Set(filled(v.Index(i)))
	}
	return out
}

func filledMap(v reflect.Value) reflect.Value {
	switch {
	case v.IsNil():
		return reflect.MakeMap(v.Type())
	case v.Type().Elem().Kind() == reflect.Interface:
		return v
	}
	out := reflect.MakeMapWithSize(v.Type(), v.Len())
	for each := v.MapRange(); each.Next(); {
		out.SetMapIndex(each.Key(), filled(each.Value()))
	}
	return out
}

var forms = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}

// hasForm tells whether a type writes itself as JSON.
func hasForm(t reflect.Type) bool {
	if t.Kind() == reflect.Interface {
		return false
	}
	for _, form := range forms {
		if t.Implements(form) || reflect.PointerTo(t).Implements(form) {
			return true
		}
	}
	return false
}
