package views

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/layout"
)

// Channels is what `fleetctl channel list` shows.
func Channels(all []fleetrepo.Channel) View {
	return list(struct {
		FormatVersion string              `json:"formatVersion"`
		Channels      []fleetrepo.Channel `json:"channels"`
	}{"1", all}, all, channelTable)
}

// Charts is what `fleetctl chart list` shows.
func Charts(all []fleetrepo.Chart) View {
	return list(struct {
		FormatVersion string            `json:"formatVersion"`
		Charts        []fleetrepo.Chart `json:"charts"`
	}{"1", all}, all, chartTable)
}

// Networks is what `fleetctl cni list` shows.
func Networks(all []fleetrepo.Network) View {
	return list(struct {
		FormatVersion string              `json:"formatVersion"`
		Networks      []fleetrepo.Network `json:"networks"`
	}{"1", all}, all, networkTable)
}

// Environments is what `fleetctl environment list` shows.
func Environments(all []fleetrepo.Environment) View {
	return list(struct {
		FormatVersion string                  `json:"formatVersion"`
		Environments  []fleetrepo.Environment `json:"environments"`
	}{"1", all}, all, environmentTable)
}

// Features is what `fleetctl feature list` shows.
func Features(all []fleetrepo.Feature) View {
	return list(struct {
		FormatVersion string              `json:"formatVersion"`
		Features      []fleetrepo.Feature `json:"features"`
	}{"1", all}, all, featureTable)
}

// ManagementClusters is what `fleetctl management list` shows.
func ManagementClusters(all []fleetrepo.ManagementCluster) View {
	return list(struct {
		FormatVersion      string                        `json:"formatVersion"`
		ManagementClusters []fleetrepo.ManagementCluster `json:"managementClusters"`
	}{"1", all}, all, managementTable)
}

// Providers is what `fleetctl provider list` shows.
func Providers(all []fleetrepo.Provider) View {
	return list(struct {
		FormatVersion string               `json:"formatVersion"`
		Providers     []fleetrepo.Provider `json:"providers"`
	}{"1", all}, all, providerTable)
}

// Standbys is what `fleetctl standby list` shows.
func Standbys(all []fleetrepo.Standby) View {
	return list(struct {
		FormatVersion string              `json:"formatVersion"`
		Standbys      []fleetrepo.Standby `json:"standbys"`
	}{"1", all}, all, standbyTable)
}

// Tenants is what `fleetctl tenant list` shows: a line for each environment of a tenant.
func Tenants(all []fleetrepo.Tenant) View {
	var places []tenantPlace
	for _, t := range all {
		for _, e := range t.Environments {
			places = append(places, tenantPlace{t.Name, e})
		}
	}
	return list(struct {
		FormatVersion string             `json:"formatVersion"`
		Tenants       []fleetrepo.Tenant `json:"tenants"`
	}{"1", all}, places, tenantTable)
}

// Apps is the output of `fleetctl app list`.
func Apps(all []fleetrepo.App) View {
	return list(struct {
		FormatVersion string          `json:"formatVersion"`
		Apps          []fleetrepo.App `json:"apps"`
	}{"1", all}, all, appTable)
}

var appTable = table[fleetrepo.App]{
	none: "There are no applications from their own repositories; `fleetctl app add` makes one.",
	name: func(a fleetrepo.App) string { return a.Name },
	columns: []column[fleetrepo.App]{
		{title: "APPLICATION", of: func(a fleetrepo.App) string { return a.Name }},
		{title: "TENANT", of: func(a fleetrepo.App) string { return a.Tenant }},
		{title: "ENVIRONMENT", of: func(a fleetrepo.App) string { return a.Environment }},
		{title: "CLOUD", of: func(a fleetrepo.App) string { return a.Cloud }},
		{title: "REVISION", of: func(a fleetrepo.App) string { return cmp.Or(a.Revision, "?") }},
		{title: "SOURCE", of: func(a fleetrepo.App) string { return cmp.Or(a.URL, "?") }},
		{title: "PATH", wide: true, of: func(a fleetrepo.App) string { return a.Path }},
	},
}

var channelTable = table[fleetrepo.Channel]{
	none: "There are no channels.",
	name: func(c fleetrepo.Channel) string { return c.Name },
	columns: []column[fleetrepo.Channel]{
		{title: "CHANNEL", of: func(c fleetrepo.Channel) string { return c.Name }},
		{title: "FOLLOWS", of: func(c fleetrepo.Channel) string {
			if c.Pattern != "" {
				return "tags " + c.Pattern
			}
			return "branch " + c.Branch
		}},
		{title: "AT", of: func(c fleetrepo.Channel) string {
			if c.Pattern != "" {
				return cmp.Or(positions(c.At), "no tag yet")
			}
			return c.Branch
		}},
		{title: "ENVIRONMENTS", of: func(c fleetrepo.Channel) string { return strings.Join(c.Environments, ", ") }},
	},
}

// positions lists the tags of a channel: one tag if all management clusters agree.
func positions(all []fleetrepo.Position) string {
	var parts []string
	same := true
	for _, p := range all {
		same = same && p.Tag == all[0].Tag
		parts = append(parts, p.Tag+" ("+p.ManagementCluster+")")
	}
	if same && len(all) > 0 {
		return all[0].Tag
	}
	return strings.Join(parts, ", ")
}

var chartTable = table[fleetrepo.Chart]{
	none: "There are no charts; `fleetctl cluster add` brings the chart of the flavour along.",
	name: func(c fleetrepo.Chart) string { return c.Name },
	columns: []column[fleetrepo.Chart]{
		{title: "CHART", of: func(c fleetrepo.Chart) string { return c.Name }},
		{title: "STATE", of: func(c fleetrepo.Chart) string { return string(c.State) }},
		{title: "FROM", of: func(c fleetrepo.Chart) string {
			if c.Fleetctl == "" {
				return "-"
			}
			return "fleetctl " + c.Fleetctl
		}},
		{title: "CHANGED BY THE TEAM", of: func(c fleetrepo.Chart) string {
			if c.State == fleetrepo.ChartOwn {
				return "-"
			}
			return yesNo(c.Changed)
		}},
		{title: "FOLDER", wide: true, of: func(c fleetrepo.Chart) string { return path.Join(layout.ChartsDir, c.Name) }},
	},
}

var networkTable = table[fleetrepo.Network]{
	none: "There are no networks; `fleetctl cni add` brings one in.",
	name: func(n fleetrepo.Network) string { return n.Name },
	columns: []column[fleetrepo.Network]{
		{title: "NETWORK", of: func(n fleetrepo.Network) string { return n.Name }},
		{title: "FLAVOURS", of: func(n fleetrepo.Network) string { return strings.Join(n.Flavours, ", ") }},
		{title: "CLUSTERS", of: func(n fleetrepo.Network) string { return strings.Join(n.Clusters, ", ") }},
		{title: "FOLDER", wide: true, of: func(n fleetrepo.Network) string { return layout.CNIDir(n.Name) }},
	},
}

var environmentTable = table[fleetrepo.Environment]{
	none: "There are no environments; `fleetctl environment add` makes one.",
	name: func(e fleetrepo.Environment) string { return e.Name },
	columns: []column[fleetrepo.Environment]{
		{title: "ENVIRONMENT", of: func(e fleetrepo.Environment) string { return e.Name }},
		{title: "CLUSTERS", of: func(e fleetrepo.Environment) string { return strconv.Itoa(e.Clusters) }},
		{title: "CHANNEL", of: func(e fleetrepo.Environment) string { return e.Channel }},
		{title: "PRODUCTION", of: func(e fleetrepo.Environment) string { return yesNo(e.Production) }},
		{title: "NOTE", optional: true, of: func(e fleetrepo.Environment) string {
			if e.Declared {
				return ""
			}
			return "not listed in fleet.yaml"
		}},
	},
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

var featureTable = table[fleetrepo.Feature]{
	none: "There are no features; `fleetctl feature add` makes one.",
	name: func(o fleetrepo.Feature) string { return o.Name },
	columns: []column[fleetrepo.Feature]{
		{title: "FEATURE", of: func(o fleetrepo.Feature) string { return o.Name }},
		{title: "ENVIRONMENTS", of: func(o fleetrepo.Feature) string { return strings.Join(environmentsOf(o), ", ") }},
		{title: "CLUSTERS", of: func(o fleetrepo.Feature) string { return strings.Join(o.Clusters, ", ") }},
		{title: "MANAGEMENT", optional: true, of: func(o fleetrepo.Feature) string { return strings.Join(o.ManagementClusters, ", ") }},
		{title: "VERSION", optional: true, of: func(o fleetrepo.Feature) string { return o.Version }},
		{title: "CHART", wide: true, of: func(o fleetrepo.Feature) string { return cmp.Or(o.Chart, "-") }},
		{title: "FOLDER", wide: true, of: func(o fleetrepo.Feature) string { return path.Join(layout.FeaturesDir, o.Name) }},
	},
}

// environmentsOf are the environments of a feature, with a word about those of which only some clusters have it.
func environmentsOf(o fleetrepo.Feature) []string {
	names := slices.Clone(o.Environments)
	for i, name := range names {
		if slices.Contains(o.Partly, name) {
			names[i] = name + partly
		}
	}
	return names
}

// partly is what a list says behind an environment of which only some clusters have something.
const partly = " (partly)"

var managementTable = table[fleetrepo.ManagementCluster]{
	none: "There are no management clusters; `fleetctl management add` declares one.",
	name: func(m fleetrepo.ManagementCluster) string { return m.Name },
	columns: []column[fleetrepo.ManagementCluster]{
		{title: "MANAGEMENT CLUSTER", of: func(m fleetrepo.ManagementCluster) string { return m.Name }},
		{title: "HOST", of: func(m fleetrepo.ManagementCluster) string { return m.Host }},
		{title: "PARENT", optional: true, of: func(m fleetrepo.ManagementCluster) string { return m.Parent }},
		{title: "FOLDER", of: func(m fleetrepo.ManagementCluster) string {
			return strings.Join(append([]string{m.Folder}, m.CloudFolders...), ", ")
		}},
		{title: "PROVIDERS", of: func(m fleetrepo.ManagementCluster) string { return strings.Join(m.Providers, ", ") }},
		{title: "CLUSTERS", of: func(m fleetrepo.ManagementCluster) string { return strconv.Itoa(m.Clusters) }},
	},
}

var providerTable = table[fleetrepo.Provider]{
	none: "There are no providers; `fleetctl provider add` lists one.",
	name: func(p fleetrepo.Provider) string { return p.Name },
	columns: []column[fleetrepo.Provider]{
		{title: "MANAGEMENT CLUSTER", of: func(p fleetrepo.Provider) string { return p.ManagementCluster }},
		{title: "PROVIDER", of: func(p fleetrepo.Provider) string { return p.Name }},
		{title: "TYPE", of: func(p fleetrepo.Provider) string { return string(p.Type) }},
		{title: "VERSION", of: func(p fleetrepo.Provider) string { return cmp.Or(p.Version, "init chooses") }},
	},
}

var standbyTable = table[fleetrepo.Standby]{
	none: "There are no standbys; `fleetctl standby add` declares one.",
	name: func(s fleetrepo.Standby) string { return s.Name },
	columns: []column[fleetrepo.Standby]{
		{title: "STANDBY", of: func(s fleetrepo.Standby) string { return s.Name }},
		{title: "OF", of: func(s fleetrepo.Standby) string { return s.Of }},
		{title: "HOST", of: func(s fleetrepo.Standby) string { return s.Host }},
	},
}

// tenantPlace is a tenant in one environment.
type tenantPlace struct {
	name string
	fleetrepo.TenantEnvironment
}

var tenantTable = table[tenantPlace]{
	none: "There are no tenants; `fleetctl tenant add` makes one.",
	name: func(t tenantPlace) string { return t.name },
	columns: []column[tenantPlace]{
		{title: "TENANT", of: func(t tenantPlace) string { return t.name }},
		{title: "ENVIRONMENT", of: func(t tenantPlace) string {
			if t.Partly {
				return t.Name + partly
			}
			return t.Name
		}},
		{title: "CLOUD", of: func(t tenantPlace) string { return t.Cloud }},
		{title: "GROUP", of: func(t tenantPlace) string { return t.Group }},
		{title: "ROLE", of: func(t tenantPlace) string { return t.Role }},
	},
}
