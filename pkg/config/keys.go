package config

import "slices"

// kind is what a key's value must be.
type kind string

const (
	kindText     kind = "text"
	kindBool     kind = "true or false"
	kindDuration kind = "a duration such as 90s or 30m"
	kindList     kind = "a list"
)

// fileKeys are the keys of the configuration file: flags whose value depends on the user or the machine, and is the same for every run.
// Options of a single run belong on the command line and in fleet.yaml.
var fileKeys = map[string]kind{
	"bundle":           kindText,
	"cache-dir":        kindText,
	"flux-token-file":  kindText,
	"flux-username":    kindText,
	"git-token-file":   kindText,
	"git-username":     kindText,
	"management":       kindText,
	"merge-kubeconfig": kindBool,
	"no-color":         kindBool,
	"output":           kindText,
	"quiet":            kindBool,
	"repo":             kindText,
	"skip-preflight":   kindList,
	"ssh-key-file":     kindText,
	"ssh-known-hosts":  kindText,
	"state-dir":        kindText,
	"timeout":          kindDuration,
	"yes":              kindBool,
}

// flagOnly are flags that count only on the command line. A variable that was once exported must not delete clusters, hide what a command
// does, or choose the cluster that a command works on.
var flagOnly = []string{"cluster", "config", "delete-clusters", "dry-run", "help", "version"}

// renamed maps old names of keys to new ones. A variable with an old name is an error, because its user expects an effect.
var renamed = map[string]string{"cluster": "management"}

// Keys returns the keys that the configuration file may hold, sorted.
func Keys() []string {
	keys := make([]string, 0, len(fileKeys))
	for key := range fileKeys {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
