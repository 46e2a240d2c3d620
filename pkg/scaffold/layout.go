// Package scaffold generates the files of a fleet repo: options in, manifest.File out. It reads and writes no files. The generated files
// are plain Flux, kustomize and Helm. Once they are in the repo, they belong to the user, and the fleet works without fleetctl.
package scaffold

import (
	"regexp"

	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
)

// maxClusterName leaves room for the suffixes that Cluster API and Helm add to a cluster's name, within their limits of 63 and 53
// characters.
const maxClusterName = 40

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// CheckName returns a usage error unless name is a DNS label of at most limit characters that every YAML parser reads as text: files and
// charts contain the name without quotes. what is the kind of the named object, for the error.
func CheckName(what, name string, limit int) error {
	if err := CheckLabel(what, name, limit); err != nil {
		return err
	}
	var value any
	if err := yaml.Unmarshal([]byte(name), &value); err != nil || value != name {
		return diag.Usage("choose a name that is neither a number nor a word like true, no or null", "%s %q is not text in YAML", what, name)
	}
	return nil
}

// CheckLabel is CheckName for a name that files quote if necessary.
func CheckLabel(what, name string, limit int) error {
	if !dnsLabel.MatchString(name) || len(name) > limit {
		return diag.Usage("use lower case letters, digits and dashes", "%s %q is not a DNS label of at most %d characters", what, name, limit)
	}
	return nil
}

// CheckLayout returns an error if the folders of a layout cannot be in a fleet repo.
func CheckLayout(l layout.Layout) error {
	if err := CheckName("cloud", l.Cloud, 63); err != nil {
		return err
	}
	return CheckName("generation", l.Generation, 63)
}
