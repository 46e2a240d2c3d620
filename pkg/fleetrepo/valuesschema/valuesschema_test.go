package valuesschema

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// doubling is a schema that takes twice as long with each step, because each step refers to the one before twice.
func doubling(steps int) map[string]any {
	definitions := map[string]any{"0": map[string]any{"type": "object"}}
	for i := 1; i <= steps; i++ {
		below := map[string]any{"$ref": fmt.Sprintf("#/$defs/%d", i-1)}
		definitions[fmt.Sprint(i)] = map[string]any{"allOf": []any{below, below}}
	}
	return map[string]any{"$defs": definitions, "$ref": fmt.Sprintf("#/$defs/%d", steps)}
}

// A schema that would take forever ends with an error, and takes no time for the values of the next cluster. The time of one schema counts
// for no other.
func TestSlowSchema(t *testing.T) {
	const within = 3 * time.Second
	many, unique := make([]any, 100_000), make([]any, 200) // one check of so many items takes some tenths of a second
	for i := range many {
		many[i] = map[string]any{"a": []any{i}}
	}
	for i := range unique {
		unique[i] = map[string]any{"uniqueItems": true}
	}
	for name, test := range map[string]struct {
		schema, values map[string]any
	}{
		"references that double": {doubling(60), map[string]any{}},
		"unique items": {
			map[string]any{"properties": map[string]any{"list": map[string]any{"allOf": unique}}}, map[string]any{"list": many},
		},
	} {
		t.Run(name, func(t *testing.T) {
			schemas := &Schemas{Within: within}
			slow, err := schemas.Compile(test.schema)
			if err != nil {
				t.Fatal(err)
			}
			if refusal, err := slow.Judge(test.values); !errors.Is(err, ErrSlow) || !strings.Contains(err.Error(), within.String()) {
				t.Fatalf("got %v, %v", refusal, err)
			}
			began := time.Now()
			if _, err := slow.Judge(map[string]any{"other": true}); !errors.Is(err, ErrSlow) {
				t.Errorf("got %v", err)
			}
			if took := time.Since(began); took >= within {
				t.Errorf("the next values took %s", took)
			}
			honest, err := schemas.Compile(doubling(3))
			if err != nil {
				t.Fatal(err)
			}
			if refusal, err := honest.Judge(map[string]any{}); refusal != nil || err != nil {
				t.Errorf("got %v, %v", refusal, err)
			}
		})
	}
}

// A name that a schema does not allow is told with its place, whatever the library has looked at since.
func TestNames(t *testing.T) {
	schema := map[string]any{"properties": map[string]any{"pools": map[string]any{"items": map[string]any{"properties": map[string]any{
		"labels": map[string]any{"propertyNames": map[string]any{"pattern": "^node/"}, "additionalProperties": map[string]any{"type": "string"}},
		"taints": map[string]any{"items": map[string]any{"type": "object"}},
	}}}}}
	pool := func(label string) any {
		return map[string]any{
			"labels": map[string]any{label: "x"}, "taints": []any{map[string]any{"key": "a"}}, "name": "a", "size": map[string]any{"a": "b"},
		}
	}
	compiled, err := new(Schemas).Compile(schema)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 { // the order in which the library looks differs
		refusal, err := compiled.Judge(map[string]any{"pools": []any{pool("node/a"), pool("team"), pool("node/b")}})
		if err != nil || refusal == nil {
			t.Fatalf("%+v, %v", refusal, err)
		}
		for refusal.Name == "" && len(refusal.Causes) > 0 {
			refusal = &refusal.Causes[0]
		}
		if at := strings.Join(refusal.Location, "/"); refusal.Name != "team" || at != "pools/1/labels" {
			t.Fatalf("%q at %s", refusal.Name, at)
		}
	}
}

// A message quotes a pattern that a person can read, and no longer one.
func TestPatterns(t *testing.T) {
	for pattern, want := range map[string]string{
		"^[a-z]+$": "'7' does not match pattern '^[a-z]+$'", "^(" + strings.Repeat("a|", 60) + "b)$": `"7" does not have the form of this value`,
	} {
		compiled, err := new(Schemas).Compile(map[string]any{"properties": map[string]any{"a": map[string]any{"pattern": pattern}}})
		if err != nil {
			t.Fatal(err)
		}
		refusal, err := compiled.Judge(map[string]any{"a": "7"})
		if err != nil || refusal == nil || len(refusal.Causes) != 1 || refusal.Causes[0].Said != want {
			t.Errorf("%s: %+v, %v", pattern, refusal, err)
		}
	}
}
