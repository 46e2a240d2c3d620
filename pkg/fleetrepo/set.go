package fleetrepo

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Assignment is path=value, in the form of --set.
type Assignment struct {
	Path  yamledit.Path
	Value any
	// given is the text of a scalar as it was typed, "" if Value comes from elsewhere.
	given string
}

// ParseAssignments parses path=value, such as region=eu-central-1 or pools[0].replicas=3. The part after = is YAML:
// numbers, true, null, [a, b]. Text that looks like one of these needs quotes.
func ParseAssignments(all []string) ([]Assignment, error) {
	out := make([]Assignment, 0, len(all))
	for _, given := range all {
		name, value, ok := strings.Cut(given, "=")
		if !ok {
			return nil, diag.Usage("write --set path=value", "--set %q has no value", given)
		}
		path, err := yamledit.ParsePath(name)
		if err != nil {
			return nil, diag.Usage("write --set path=value, where path is like pools[0].replicas", "--set %q: %v", given, err)
		}
		documents, err := yamledit.Parse([]byte(value))
		if err != nil || len(documents) > 1 {
			return nil, diag.Usage("put text in quotes", "--set %q: the value is not YAML", given)
		}
		a := Assignment{Path: path, Value: ""}
		if len(documents) == 1 {
			a.Value, a.given = nil, text(documents[0])
			if err := documents[0].Decode(&a.Value); err != nil {
				return nil, diag.Usage("put text in quotes", "--set %q: %v", given, err)
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// asWanted returns assignments in which a number or a truth value is the text that was typed, where schema wants text and nothing else:
// 1.30 is then the version 1.30, and not the number 1.3.
func asWanted(schema map[string]any, all []Assignment) []Assignment {
	out := slices.Clone(all)
	for i, a := range out {
		switch a.Value.(type) {
		case nil, string, map[string]any, []any:
			continue
		}
		if wanted := schemaAt(schema, a.Path)["type"]; wanted == "string" && a.given != "" {
			out[i].Value = a.given
		}
	}
	return out
}

// ParseValues reads a file of values, in the form of --values.
func ParseValues(name string, content []byte) (map[string]any, error) {
	values, err := decodeMap(content)
	if err != nil {
		return nil, findingsOf(name, err)
	}
	return values, nil
}

// Assign applies assignments to values, in order. It makes missing fields on the way. In a list, an assignment can set an existing item
// or append one.
func Assign(values map[string]any, all []Assignment) (map[string]any, error) {
	for _, a := range all {
		changed, err := assign(values, a.Path, a.Value)
		if err != nil {
			return nil, diag.Usage("see the chart's README for the values", "--set %s: %v", a.Path, err)
		}
		values, _ = changed.(map[string]any)
	}
	return values, nil
}

func assign(at any, path yamledit.Path, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	switch step := path[0].(type) {
	case string:
		fields, ok := at.(map[string]any)
		if !ok && at != nil {
			return nil, fmt.Errorf("%s is not a field: it has a value or a list", step)
		}
		fields = maps.Clone(fields)
		if fields == nil {
			fields = map[string]any{}
		}
		inner, err := assign(fields[step], path[1:], value)
		fields[step] = inner
		return fields, err
	case int:
		list, ok := at.([]any)
		if !ok && at != nil {
			return nil, fmt.Errorf("[%d] is not an item: there is no list", step)
		}
		list = slices.Clone(list)
		if step == len(list) {
			list = append(list, nil)
		}
		if step > len(list) {
			return nil, fmt.Errorf("item %d comes before %d", len(list), step)
		}
		inner, err := assign(list[step], path[1:], value)
		list[step] = inner
		return list, err
	}
	return nil, fmt.Errorf("bad path %s", path)
}

// setFlag returns the flag that gives a value, as one types it in a shell. ParseAssignments reads the same value from
// it.
func setFlag(path yamledit.Path, value any) string {
	text, isText := value.(string)
	if isText {
		read, err := ParseAssignments([]string{"a=" + text})
		isText = err == nil && read[0].Value == value
	}
	if !isText {
		encoded, err := json.Marshal(value) // JSON is YAML
		if err != nil {
			encoded = []byte("…")
		}
		text = string(encoded)
	}
	return "--set " + diag.ShellWord(path.String()+"="+text)
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
