package templates_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// misread are texts that YAML misreads if a template forgets the quotes: as a number, a boolean, null, a mapping, or a part of the text. No
// other value has these numbers.
var misread = []string{"0123457", "1e7", "no", "true", "null", "a: b", "a #b", "[a", `a"b`}

// A text in the values stays a text in the objects, whatever it looks like. The test replaces each text of the values, and the name of the
// release, by each misread text. The objects then have as many texts as before, and no new scalar of another type.
func TestTextStaysText(t *testing.T) {
	for _, flavour := range flavours(t) {
		t.Run(flavour, func(t *testing.T) {
			s := schemaOf(t, flavour)
			everything := cases(t, flavour)[flavour+"-everything"]
			base, err := rendered(t, "x", flavour, everything)
			if err != nil {
				t.Fatal(err)
			}
			want, tried := scalars(t, base), 0
			for _, text := range misread {
				values := everything
				changed := 0
				for _, at := range leaves(everything, s, nil) {
					// The names of pools have to differ, and those of subnets.
					if at.takes(text) && at.isFirst() && at.path != "network.vnet.nodeSubnet" {
						values = at.with(values, text)
						changed++
					}
				}
				release := "x"
				if regexp.MustCompile(`^[a-z0-9]+$`).MatchString(text) {
					release = text
				}
				got, err := rendered(t, release, flavour, values)
				if err != nil {
					t.Errorf("%q: %v", text, err)
					continue
				}
				if diff := cmp.Diff(want, scalars(t, got)); diff != "" {
					t.Errorf("%q in %d values is taken for something else, -before +now (how often):\n%s", text, changed, diff)
				}
				tried += changed
			}
			if tried < 20 {
				t.Errorf("only %d texts were tried", tried)
			}
		})
	}
}

// scalars counts the scalars in objects: each number, boolean and null by its value, and all texts together. For a text that is YAML
// itself, it counts the scalars in that YAML.
func scalars(t *testing.T, objects []object) map[string]int {
	t.Helper()
	found := map[string]int{}
	var count func(v any)
	count = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, inner := range v {
				count(inner)
			}
		case []any:
			for _, inner := range v {
				count(inner)
			}
		case string:
			found["text"]++
			if strings.HasPrefix(v, "apiVersion: ") {
				var inner any
				if err := yaml.Unmarshal([]byte(v), &inner); err != nil {
					t.Fatalf("%v in:\n%s", err, v)
				}
				count(inner)
			}
		default:
			found[fmt.Sprint(v)]++
		}
	}
	for _, o := range objects {
		count(o)
	}
	return found
}

// leaf is the place of a scalar in the values.
type leaf struct {
	path   string
	schema *schema
	// steps are the path to the place: keys, and indexes of items.
	steps []any
	value any
}

// takes tells whether the place is for a free text, and whether the schema allows this one.
func (p leaf) takes(value string) bool {
	return p.schema.Type == "string" && len(p.schema.Enum) == 0 && p.schema.admits(value)
}

// admits tells whether a text has a length and a form that the schema allows.
func (s *schema) admits(value string) bool {
	if s.MaxLength != nil && len(value) > *s.MaxLength || s.MinLength != nil && len(value) < *s.MinLength {
		return false
	}
	return s.Pattern == "" || regexp.MustCompile(s.Pattern).MatchString(value)
}

// isFirst tells whether the place is in the first item of each list on its path.
func (p leaf) isFirst() bool {
	return !slices.ContainsFunc(p.steps, func(step any) bool { i, ok := step.(int); return ok && i > 0 })
}

// with returns the values with another value at this place.
func (p leaf) with(values map[string]any, value any) map[string]any {
	return replaced(values, p.steps, value).(map[string]any)
}

func replaced(in any, steps []any, value any) any {
	if len(steps) == 0 {
		return value
	}
	switch in := in.(type) {
	case map[string]any:
		out := maps.Clone(in)
		key := steps[0].(string)
		out[key] = replaced(in[key], steps[1:], value)
		return out
	case []any:
		out := append([]any{}, in...)
		i := steps[0].(int)
		out[i] = replaced(in[i], steps[1:], value)
		return out
	}
	return value
}

// pathOf returns the steps as a path such as pools[1].labels.
func pathOf(steps []any) string {
	var b strings.Builder
	for _, step := range steps {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		case string:
			if b.Len() > 0 {
				b.WriteString(".")
			}
			b.WriteString(step)
		}
	}
	return b.String()
}
