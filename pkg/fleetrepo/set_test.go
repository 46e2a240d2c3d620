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
