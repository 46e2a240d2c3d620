package checkup

import (
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Names are the names of all preflight checks, sorted.
func Names() []string {
	names := make([]string, 0, len(list))
	for _, e := range list {
		names = append(names, e.name)
	}
	slices.Sort(names)
	return names
}

// CheckNames refuses names that no check has, because whoever skips a check by a misspelt name would not skip it. The error has the code
// diag.ExitUsage.
func CheckNames(given []string) error {
	names := Names()
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
