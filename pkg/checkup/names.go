package checkup

import (
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// CheckNames returns an error for names of checks that do not exist: a check whose misspelt name is skipped would run
// all the same. The error has the code diag.ExitUsage.
func CheckNames(given []string) error {
	var names []string
	for _, e := range list {
		names = append(names, e.name)
	}
	slices.Sort(names)
	for _, name := range given {
		if slices.Contains(names, name) {
			continue
		}
		hint := "the checks are: " + strings.Join(names, ", ")
		if nearest := diag.Nearest(name, names); nearest != "" {
			hint = "did you mean " + nearest + "?"
		}
		return diag.Usage(hint, "there is no preflight check %.60q", name)
	}
	return nil
}
