package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// readsText is the interface of types with a format of their own.
var readsText = reflect.TypeFor[json.Unmarshaler]()

// formats describe how values of such types are written.
var formats = map[reflect.Type]struct{ what, hint string }{
	quantityType:                          {"quantity", "write a quantity such as 500m or 2Gi"},
	reflect.TypeFor[metav1.Duration]():    {"duration", "write a duration such as 30s, 10m or 1h30m"},
	reflect.TypeFor[metav1.Time]():        {"time", "write a time such as 2006-01-02T15:04:05Z"},
	reflect.TypeFor[metav1.MicroTime]():   {"time", "write a time such as 2006-01-02T15:04:05.000000Z"},
	reflect.TypeFor[intstr.IntOrString](): {"number or text", "write a number, or a text such as 25%"},
}

// unreadable reports the values of an object that do not have the format of their Go types: quantities, durations, times. A decoder would
// report only the first one, without its path.
func unreadable(t reflect.Type, value any, path string) []Problem {
	return judgeLeaves(t, value, path, unreadableText)
}

// judgeLeaves calls judge for the values without fields in an object, with their Go types, and returns all problems. It skips unknown
// fields and null.
func judgeLeaves(
	t reflect.Type, value any, path string, judge func(t reflect.Type, value any, path string) []Problem,
) (out []Problem) {
	t = inner(t)
	switch value := value.(type) {
	case nil:
		return nil
	case []any:
		if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
			for i, item := range value {
				out = append(out, judgeLeaves(t.Elem(), item, path+"["+strconv.Itoa(i)+"]", judge)...)
			}
		}
		return out
	case map[string]any:
		for _, name := range sortedNames(value) {
			next, ok := t, t.Kind() == reflect.Map
			if ok {
				next = t.Elem()
			} else if t.Kind() == reflect.Struct {
				next, ok = jsonField(t, name)
			}
			if ok {
				out = append(out, judgeLeaves(next, value[name], below(path, name), judge)...)
			}
		}
		return out
	}
	return judge(t, value, path)
}

// unreadableText is unreadable for a single value.
func unreadableText(t reflect.Type, value any, path string) []Problem {
	if !reflect.PointerTo(t).Implements(readsText) {
		return nil
	}
	text, err := json.Marshal(value)
	if err != nil || json.Unmarshal(text, reflect.New(t).Interface()) == nil {
		return nil
	}
	format, ok := formats[t]
	if !ok {
		return []Problem{{Type: Invalid, Path: path, Summary: fmt.Sprintf("%.40s is not in the format of this field", text)}}
	}
	if _, isText := value.(string); !isText {
		found := described(fmt.Sprintf("%T", value))
		return []Problem{{Type: WrongType, Path: path, Summary: "found " + found + ", expected a " + format.what, Hint: format.hint}}
	}
	return []Problem{{Type: Invalid, Path: path, Summary: fmt.Sprintf("%.40s is no %s", text, format.what), Hint: format.hint}}
}
