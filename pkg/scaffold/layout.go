// Package scaffold makes the files of a fleet repo: pure generators, options in, manifest.File out. What it makes is plain
// Flux, kustomize and Helm, and is the user's from then on: a fleet survives without fleetctl.
package scaffold

import (
	"path"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Layout is where a management cluster and its workload clusters stand in the fleet repo.
type Layout struct {
	// Cloud is the folder below providers/.
	Cloud string
	// Generation is the folder below that: a new generation of management cluster can stand beside the old one.
	Generation string
}

// Management is the folder that the management cluster's Flux applies first.
func (l Layout) Management() string { return path.Join("providers", l.Cloud, l.Generation, "mgmt") }

// Environment is the folder of an environment's clusters.
func (l Layout) Environment(name string) string {
	return path.Join("providers", l.Cloud, l.Generation, "clusters", name)
}

// ClustersFile has the Flux Kustomization that applies an environment's folder.
func (l Layout) ClustersFile(environment string) string {
	return path.Join(l.Management(), "clusters-"+environment+".yaml")
}

// Apps is the folder with what every cluster of an environment runs: its own Flux applies it.
func (l Layout) Apps(environment string) string {
	return path.Join(l.Environment(environment), commonDir, "apps")
}

// EnvironmentChart is the file with the HelmChart of a flavour.
func (l Layout) EnvironmentChart(environment, flavour string) string {
	return path.Join(l.Environment(environment), "chart-"+flavour+".yaml")
}

// ChartName is the name of the HelmChart, in flux-system, of an environment's clusters of a flavour.
func ChartName(environment, flavour string) string { return environment + "-" + flavour }

// FlavourOf is the flavour of the HelmChart called name of an environment: the other way round. ok is false for any other name.
func FlavourOf(environment, name string) (flavour string, ok bool) {
	flavour, ok = strings.CutPrefix(name, environment+"-")
	return flavour, ok && flavour != ""
}

// SourceDir is the folder with nothing but the GitRepository of a channel. The management cluster applies it, and for each cluster that
// follows the channel itself a Flux Kustomization can, so that the one line in it moves both.
func (l Layout) SourceDir(channel string) string {
	return path.Join(l.Management(), "sources", channel)
}

// Cluster is the folder of one cluster.
func (l Layout) Cluster(environment, name string) string {
	return path.Join(l.Environment(environment), name)
}

// ChartsDir holds one chart per flavour of cluster.
const ChartsDir = "charts"

// commonDir holds what an environment has for all its clusters; no cluster can be called so.
const commonDir = "common"

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

func (l Layout) check() error {
	if err := CheckName("cloud", l.Cloud, 63); err != nil {
		return err
	}
	return CheckName("generation", l.Generation, 63)
}
