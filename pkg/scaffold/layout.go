// Package scaffold makes the files of a fleet repo: pure generators, options in, manifest.File out. What it makes is plain
// Flux, kustomize and Helm, and is the user's from then on: a fleet survives without fleetctl.
package scaffold

import (
	"regexp"

	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
)

// maxClusterName leaves room for what Cluster API and Helm append to a cluster's name within their 63 and 53 characters.
const maxClusterName = 40

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// CheckName returns a usage error unless name, of what kind of thing it says, is a DNS label of at most limit characters, and is text to every
// reader of YAML: it stands in files and in charts without quotes.
func CheckName(what, name string, limit int) error {
	if err := CheckLabel(what, name, limit); err != nil {
		return err
	}
	var value any
	if err := yaml.Unmarshal([]byte(name), &value); err != nil || value != name {
		return diag.Usage("choose one that is neither a number nor a word like true, no or null", "%s %q is not text in YAML", what, name)
	}
	return nil
}

// CheckLabel is CheckName for a name that stands in quotes wherever it needs them.
func CheckLabel(what, name string, limit int) error {
	if !dnsLabel.MatchString(name) || len(name) > limit {
		return diag.Usage("use lower case letters, digits and dashes", "%s %q is not a DNS label of at most %d characters", what, name, limit)
	}
	return nil
}

// checkLayout refuses a layout whose folders no fleet repo has.
func checkLayout(l layout.Layout) error {
	if err := CheckName("cloud", l.Cloud, 63); err != nil {
		return err
	}
	return CheckName("generation", l.Generation, 63)
}
