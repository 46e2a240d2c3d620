package fleetrepo

import (
	"os/exec"
	"reflect"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

// A shell parses the flag in a hint to exactly the value.
func TestSetFlag(t *testing.T) {
	for want, value := range map[string]any{
		"--set a.b=eu-central-1":    "eu-central-1",
		"--set 'a.b=VM Network'":    "VM Network",
		`--set 'a.b="1"'`:           "1",
		"--set a.b=3":               3,
		`--set 'a.b=it'\''s'`:       "it's",
		`--set 'a.b=["a","b c"]'`:   []any{"a", "b c"},
		`--set 'a.b=$(rm)'`:         "$(rm)",
		"--set a.b=/dc/vm/Template": "/dc/vm/Template",
	} {
		got := setFlag(yamledit.Path{"a", "b"}, value)
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "set -- "+got+`; printf %s "$2"`).Output()
		if err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		read, err := ParseAssignments([]string{string(out)})
		if err != nil || !reflect.DeepEqual(read[0].Value, value) {
			t.Errorf("%s is read as %v, %v", got, read, err)
		}
	}
}

// What is typed becomes text where a chart wants text, digits and all.
func TestNumbersBecomeTextWhereAChartWantsText(t *testing.T) {
	schema := map[string]any{"properties": map[string]any{
		"disk":  map[string]any{"type": "string"},
		"count": map[string]any{"type": "integer"},
		"size":  map[string]any{"type": []any{"integer", "string"}},
		"tags":  map[string]any{"additionalProperties": map[string]any{"type": "string"}},
		"pools": map[string]any{"items": map[string]any{"properties": map[string]any{"zone": map[string]any{"type": "string"}}}},
	}}
	for given, want := range map[string]any{
		"disk=60": "60", "disk=1.30": "1.30", "disk=true": "true", "disk=0x10 # hex": "0x10", "disk=60Gi": "60Gi", "disk=null": nil,
		"disk=[1]": []any{1}, "count=3": 3, "size=3": 3, "tags.cost=4711": "4711", "pools[0].zone=1": "1", "other=1": 1,
	} {
		read, err := ParseAssignments([]string{given})
		if err != nil {
			t.Fatal(err)
		}
		if got := asWanted(schema, read)[0].Value; !reflect.DeepEqual(got, want) {
			t.Errorf("--set %s is %#v, want %#v", given, got, want)
		}
	}
}
