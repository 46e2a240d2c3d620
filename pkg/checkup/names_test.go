package checkup

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

func TestCheckNames(t *testing.T) {
	if err := CheckNames([]string{"memory", "engine disk", Flux}); err != nil {
		t.Error(err)
	}
	for name, hint := range map[string]string{"memroy": "did you mean memory?", "nope": "the checks are: cgroups, clock"} {
		err := CheckNames([]string{"memory", name})
		if err == nil || diag.Code(err) != diag.ExitUsage || !strings.Contains(err.Error(), name) || !strings.HasPrefix(diag.Hint(err), hint) {
			t.Errorf("%s: got %v, hint %q", name, err, diag.Hint(err))
		}
	}
}

// Names tell checks apart in reports and in --skip-preflight, and MayBeSkipped judges by them.
func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range list {
		if seen[e.name] {
			t.Errorf("two checks are named %q", e.name)
		}
		seen[e.name] = true
	}
	if !seen[Fleet] || !seen[Flux] {
		t.Error("the list lacks a check that nobody may skip")
	}
}
