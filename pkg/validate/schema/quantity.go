package schema

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// maxQuantity is how many characters a quantity may have.
const maxQuantity = 100

var (
	quantityType = reflect.TypeFor[resource.Quantity]()
	farExponent  = regexp.MustCompile(`[eE][+-]?[0-9]{4,}`)
)

// isEndless tells of a number that takes hours to read as a quantity: apimachinery works with all of its digits, and with all that its
// exponent stands for.
func isEndless(text string) bool {
	text = strings.TrimSpace(text)
	if text == "" || !strings.ContainsRune("+-.0123456789", rune(text[0])) {
		return false
	}
	return len(text) > maxQuantity || farExponent.MatchString(text)
}

// hasEndless tells whether isEndless is true of any text in a value.
func hasEndless(value any) bool {
	switch value := value.(type) {
	case string:
		return isEndless(value)
	case []any:
		return slices.ContainsFunc(value, hasEndless)
	case map[string]any:
		for _, field := range value {
			if hasEndless(field) {
				return true
			}
		}
	}
	return false
}

// endlessQuantities are the quantities of an object, by its Go type, that are not to be read.
func endlessQuantities(t reflect.Type, value any, path string) (out []Problem) {
	t = inner(t)
	if text, ok := value.(string); ok && t == quantityType && isEndless(text) {
		return []Problem{{
			Type: Invalid, Path: path, Summary: "no quantity has so many digits, or so large an exponent",
			Hint: "write a quantity such as 500m or 2Gi",
		}}
	}
	switch value := value.(type) {
	case []any:
		if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
			for i, item := range value {
				out = append(out, endlessQuantities(t.Elem(), item, path+"["+strconv.Itoa(i)+"]")...)
			}
		}
	case map[string]any:
		for _, name := range sortedNames(value) {
			next, ok := t, t.Kind() == reflect.Map
			if ok {
				next = t.Elem()
			} else if t.Kind() == reflect.Struct {
				next, ok = jsonField(t, name)
			}
			if ok {
				out = append(out, endlessQuantities(next, value[name], below(path, name))...)
			}
		}
	}
	return out
}
