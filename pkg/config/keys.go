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

// fileKeys are what the configuration file may hold: the flags that say how fleetctl works for this user or on this machine, on
// every run. What a single run is to do stays on the command line and in fleet.yaml.
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

// flagOnly are flags that must be typed each time: a variable that was once exported must not delete clusters or hide what a
// command does. The cluster that a command works on is one of them.
var flagOnly = []string{"cluster", "config", "delete-clusters", "dry-run", "help", "version"}

// renamed are keys that have another name now. Their variables are refused: whoever set one would think that it counts.
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
