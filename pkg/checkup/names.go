package checkup

import (
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// names are those of all checks; which of them apply depends on the session.
var names = []string{
	"cgroups", "clock", "container engine", "disk for cache", "disk for state", "docker provider's port", "engine disk", "engine socket",
	"fleet tags", Fleet, Flux, "git", "git deploy key", "git push", "git server's port", "git token for flux", "image digests",
	"inotify limits", "kernel", "memory", "name", "other users", "provider variables",
}

// CheckNames refuses names that no check has, because whoever skips a check by a misspelt name would not skip it. The error has the code
// diag.ExitUsage.
func CheckNames(given []string) error {
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
