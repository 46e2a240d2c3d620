package schema

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// maxQuantity is the longest quantity that is read, in characters.
const maxQuantity = 100

var (
	quantityType = reflect.TypeFor[resource.Quantity]()
	farExponent  = regexp.MustCompile(`[eE][+-]?[0-9]{4,}`)
)

// isEndless tells whether a text is a number that could take hours to parse as a quantity. The API machinery computes all its digits,
// including those that its exponent stands for.
func isEndless(text string) bool {
	text = strings.TrimSpace(text)
	if text == "" || !strings.ContainsRune("+-.0123456789", rune(text[0])) {
		return false
	}
	return len(text) > maxQuantity || farExponent.MatchString(text)
}

// hasEndless tells whether isEndless is true for any text in a value.
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

// endlessQuantities reports the quantities of an object that must not be parsed. The Go type says which values are quantities.
func endlessQuantities(t reflect.Type, value any, path string) []Problem {
	return judgeLeaves(t, value, path, func(t reflect.Type, value any, path string) []Problem {
		if text, ok := value.(string); !ok || t != quantityType || !isEndless(text) {
			return nil
		}
		return []Problem{{
			Type: Invalid, Path: path, Summary: "no quantity has so many digits, or so large an exponent",
			Hint: "write a quantity such as 500m or 2Gi",
		}}
	})
}
