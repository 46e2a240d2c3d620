package templates_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

// schema has the fields of a values.schema.json that the tests check.
type schema struct {
	Type                 any                `json:"type"`
	Description          string             `json:"description"`
	Examples             []map[string]any   `json:"examples"`
	Default              any                `json:"default"`
	Enum                 []any              `json:"enum"`
	Pattern              string             `json:"pattern"`
	Minimum              *float64           `json:"minimum"`
	Maximum              *float64           `json:"maximum"`
	MinLength            *int               `json:"minLength"`
	MaxLength            *int               `json:"maxLength"`
	MaxItems             *int               `json:"maxItems"`
	Required             []string           `json:"required"`
	Properties           map[string]*schema `json:"properties"`
	PropertyNames        *schema            `json:"propertyNames"`
	AdditionalProperties json.RawMessage    `json:"additionalProperties"`
	Items                *schema            `json:"items"`
	UniqueItems          bool               `json:"uniqueItems"`
	AnyOf                []*schema          `json:"anyOf"`
}

// free returns the schema of values with free keys, such as labels; nil if the schema allows no free keys.
func (s *schema) free() *schema {
	var free schema
	if json.Unmarshal(s.AdditionalProperties, &free) != nil {
		return nil
	}
	return &free
}

func schemaOf(t *testing.T, flavour string) *schema {
	t.Helper()
	var s schema
	decode(t, "charts/"+flavour+"/values.schema.json", &s)
	return &s
}

func defaults(t *testing.T, flavour string) map[string]any {
	t.Helper()
	var values map[string]any
	decode(t, "charts/"+flavour+"/values.yaml", &values)
	return values
}

// validator returns a function that merges values into the values.yaml of a flavour, as Helm does, and validates the result.
func validator(t *testing.T, flavour string) func(values map[string]any) error {
	t.Helper()
	var document any
	decode(t, "charts/"+flavour+"/values.schema.json", &document)
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(values map[string]any) error {
		return compiled.Validate(overlay(defaults(t, flavour), values))
	}
}

func overlay(base, top map[string]any) map[string]any {
	out := maps.Clone(base)
	for name, value := range top {
		below, belowIsMap := out[name].(map[string]any)
		above, aboveIsMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(out, name)
		case belowIsMap && aboveIsMap:
			out[name] = overlay(below, above)
		default:
			out[name] = value
		}
	}
	return out
}

// cases returns the test values of a flavour by name: the example of its schema, and testdata/values/<flavour>-<case>.yaml.
func cases(t *testing.T, flavour string) map[string]map[string]any {
	t.Helper()
	s := schemaOf(t, flavour)
	if len(s.Examples) != 1 {
		t.Fatalf("the schema of %s has %d examples, want one", flavour, len(s.Examples))
	}
	out := map[string]map[string]any{flavour + "-smallest": s.Examples[0]}
	files, err := filepath.Glob(filepath.Join("testdata", "values", flavour+"-*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var values map[string]any
		if err := yaml.UnmarshalStrict(content, &values); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out[strings.TrimSuffix(filepath.Base(file), ".yaml")] = values
	}
	return out
}

// The schema accepts every case, and the cases together use every value that it knows.
func TestSchemaTakes(t *testing.T) {
	for _, flavour := range flavours(t) {
		t.Run(flavour, func(t *testing.T) {
			validate := validator(t, flavour)
			unused := map[string]bool{}
			s := schemaOf(t, flavour)
			walk(s, "", func(at string, _ *schema) { unused[at] = true })
			for name, values := range cases(t, flavour) {
				if err := validate(values); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				markUsed(unused, "", values, s)
			}
			for _, at := range slices.Sorted(maps.Keys(unused)) {
				t.Errorf("no case sets %s", at)
			}
		})
	}
}

// walk calls visit for every value that s knows.
func walk(s *schema, at string, visit func(at string, s *schema)) {
	for name, property := range s.Properties {
		visit(at+"."+name, property)
		walk(property, at+"."+name, visit)
	}
	if s.Items != nil {
		walk(s.Items, at+"[]", visit)
	}
}

func markUsed(unused map[string]bool, at string, value any, s *schema) {
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			if property := s.Properties[name]; property != nil {
				delete(unused, at+"."+name)
				markUsed(unused, at+"."+name, v, property)
			}
		}
	case []any:
		for _, v := range value {
			markUsed(unused, at+"[]", v, s.Items)
		}
	}
}

// The schema refuses each value of the case "everything" after every change that the schema of the value forbids.
func TestSchemaRefuses(t *testing.T) {
	for _, flavour := range flavours(t) {
		t.Run(flavour, func(t *testing.T) {
			validate := validator(t, flavour)
			everything := cases(t, flavour)[flavour+"-everything"]
			tried := 0
			spoil(everything, schemaOf(t, flavour), "", func(what string) {
				tried++
				err := validate(everything)
				if err == nil {
					t.Errorf("%s is not refused", what)
				} else if at, _, _ := strings.Cut(what, ": "); !strings.Contains(fmt.Sprintf("%#v", err), at[strings.LastIndex(at, "/")+1:]) {
					t.Errorf("%s: the refusal does not name it: %v", what, err)
				}
			})
			if err := validate(everything); err != nil || tried < 20 {
				t.Errorf("%d ways tried, then: %v", tried, err)
			}
		})
	}
}

// A cluster needs a version, and a pool either a number of nodes or both limits.
func TestSchemaNeeds(t *testing.T) {
	for _, flavour := range flavours(t) {
		validate, example := validator(t, flavour), schemaOf(t, flavour).Examples[0]
		for _, name := range schemaOf(t, flavour).Required {
			without := maps.Clone(example)
			delete(without, name)
			if err := validate(without); err == nil && defaults(t, flavour)[name] == "" {
				t.Errorf("%s takes values without %s", flavour, name)
			}
		}
		pools, ok := example["pools"].([]any)
		if !ok {
			t.Fatalf("the example of %s has no pools", flavour)
		}
		for sizes, good := range map[string]bool{
			"replicas: 3": true, "min: 0\nmax: 3": true, "min: 2": false, "max: 2": false, "replicas: 1\nmin: 1\nmax: 3": false, "{}": false,
		} {
			var pool map[string]any
			if err := yaml.Unmarshal([]byte(sizes), &pool); err != nil {
				t.Fatal(err)
			}
			first, ok := pools[0].(map[string]any)
			if !ok {
				t.Fatalf("a pool of %s is %T", flavour, pools[0])
			}
			pool = overlay(first, pool)
			if !strings.Contains(sizes, "replicas") {
				delete(pool, "replicas")
			}
			if err := validate(overlay(example, map[string]any{"pools": []any{pool}})); (err == nil) != good {
				t.Errorf("%s: a pool with %q: %v", flavour, sizes, err)
			}
		}
	}
}

// spoil makes one value after the other invalid, calls check each time, and restores the value.
func spoil(values map[string]any, s *schema, at string, check func(what string)) {
	values["unheardOf"] = true
	check(at + "/unheardOf: unknown")
	delete(values, "unheardOf")
	for _, name := range slices.Sorted(maps.Keys(values)) {
		property, good := s.Properties[name], values[name]
		if property == nil {
			continue // a free key, such as that of a label
		}
		here := at + "/" + name
		for _, bad := range badValues(property) {
			values[name] = bad
			check(fmt.Sprintf("%s: %.60v", here, bad))
			values[name] = good
		}
		switch good := good.(type) {
		case map[string]any:
			if property.Properties != nil {
				spoil(good, property, here, check)
			}
		case []any:
			for i, item := range good {
				if fields, ok := item.(map[string]any); ok {
					spoil(fields, property.Items, fmt.Sprintf("%s/%d", here, i), check)
				}
			}
			if property.Items != nil {
				for _, bad := range badValues(property.Items) {
					values[name] = []any{bad}
					check(fmt.Sprintf("%s: [%.60v]", here, bad))
					values[name] = good
				}
			}
		}
	}
}

func badValues(s *schema) []any {
	bad := []any{[]any{map[string]any{}}, map[string]any{"a b": []any{}}, "!", 12345678.5}
	if s.Type == "string" && len(s.Enum) == 0 && s.Pattern == "" {
		bad = bad[:2] // free text
		bad = append(bad, 5.0)
	}
	if s.Minimum != nil {
		bad = append(bad, *s.Minimum-1)
	}
	if s.Maximum != nil {
		bad = append(bad, *s.Maximum+1)
	}
	if s.MinLength != nil {
		bad = append(bad, "")
	}
	if s.MaxLength != nil {
		bad = append(bad, strings.Repeat("a", *s.MaxLength+1))
	}
	return bad
}
