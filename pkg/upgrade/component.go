package upgrade

import (
	"strings"

	"github.com/fleetctl/fleetctl/pkg/capi/releases"
)

// Component is a part of the management cluster that has a version.
type Component struct {
	Name string `json:"name"`
	// Type is that of a provider, or cert-manager, flux, kubernetes or feature.
	Type string `json:"type"`
	// Installed is empty if the component is not installed, or the cluster was not asked. Declared is empty if
	// fleet.yaml leaves it open. Newest is empty if it is not known.
	Installed string `json:"installed,omitempty"`
	Declared  string `json:"declared,omitempty"`
	// Newest is the newest version that fits: it implements the Cluster API contract that this fleetctl knows, and one
	// step leads to it from the installed version.
	Newest string `json:"newest,omitempty"`
	// Unread says that the releases could not be read, or were not asked for, so Newest is not known.
	Unread bool `json:"unread,omitempty"`
	// Contract of the declared version, for a provider.
	Contract string `json:"contract,omitempty"`
	// Against says why the declared version is not possible.
	Against []string `json:"against"`
	// Restarts are the Deployments that an upgrade replaces. Converts are the kinds that are stored in another version
	// afterwards.
	Restarts []string `json:"restarts"`
	Converts []string `json:"converts"`
	// Replaces says which machines the fleet repo's version of Kubernetes replaces. No upgrade of another component replaces a machine.
	Replaces []string `json:"replaces"`
	// Note is what else a reader has to know.
	Note string `json:"note,omitempty"`
}

// title is the component's name in a message. A feature may have the name of a provider.
func (c *Component) title() string {
	if c.Type == TypeFeature {
		return "feature " + c.Name
	}
	return c.Name
}

// Changes tells whether the installed version differs from the declared one.
func (c *Component) Changes() bool {
	installed := c.Installed
	if c.Type == TypeFeature {
		return installed != "" && !sameChart(installed, c.Declared)
	}
	if c.Type == TypeKubernetes {
		installed, _, _ = strings.Cut(installed, "+") // what a distribution appends is no version of Kubernetes
	}
	return installed != "" && c.Declared != "" && installed != c.Declared
}

// Outdated tells whether there is a newer version than the declared one or, if none is declared, than the installed
// one.
func (c *Component) Outdated() bool {
	have := wantedVersion(c)
	if c.Type == TypeFeature { // the version of a chart need not begin with v
		return c.Newest != "" && c.Newest != have
	}
	return c.Newest != "" && have != "" && releases.IsOlder(have, c.Newest)
}
