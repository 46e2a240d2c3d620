package cmd

import (
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/layout"
)

func newFeatureCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use: "feature", Short: "List, add, enable, disable and remove features: add-ons of the platform",
		Long: `A feature is an add-on of the platform: objects in features/<feature>, in one folder what only the platform may own, in another what stands in
its namespace. Environments, or single clusters, are given it.`,
	}
	c.AddCommand(newFeatureAddCmd(f), newFeatureListCmd(f), newFeatureEnableCmd(f), newFeatureDisableCmd(f), newFeatureRemoveCmd(f))
	return c
}

func newFeatureAddCmd(f *factory) *cobra.Command {
	var o changeFlags
	c := &cobra.Command{
		Use:     "add NAME",
		Short:   "Add a feature to fill",
		Long:    "Add a feature: the folders for its objects, with a namespace. Nobody has it before it is enabled." + editing,
		Example: "  fleetctl feature add ingress",
		RunE: func(c *cobra.Command, args []string) error {
			return edit(c, f, &o, func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) { return r.AddFeature(args[0]) })
		},
	}
	o.add(c)
	takes(f, c, argument{what: "feature"})
	return c
}

func newFeatureEnableCmd(f *factory) *cobra.Command {
	return newFeatureSwitchCmd(f, &cobra.Command{
		Use:   "enable NAME",
		Short: "Give a feature to environments or clusters",
		Long: `Give a feature to every cluster of environments, of all where none is named, or to single clusters. Each cluster's own Flux applies the
features of its environment; those of a single cluster the management cluster applies there.` + editing,
		Example: `  fleetctl feature enable ingress --environment staging --push
  fleetctl feature enable gpu --cluster train-1`,
	}, (*fleetrepo.Repo).EnableFeature)
}

func newFeatureDisableCmd(f *factory) *cobra.Command {
	return newFeatureSwitchCmd(f, &cobra.Command{
		Use:     "disable NAME",
		Short:   "Take a feature from environments or clusters",
		Long:    "Take a feature from environments or single clusters; where none is named, from all that have it." + editing,
		Example: "  fleetctl feature disable ingress --environment staging --push",
	}, (*fleetrepo.Repo).DisableFeature)
}

func newFeatureRemoveCmd(f *factory) *cobra.Command {
	return newRemoveCmd(f, &cobra.Command{
		Short:   "Remove a feature that nobody has",
		Long:    "Remove a feature with all its files. Whoever has it loses it first: `fleetctl feature disable`." + editing,
		Example: "  fleetctl feature remove ingress --dry-run",
	}, ofFeature, (*fleetrepo.Repo).RemoveFeature)
}

func newFeatureSwitchCmd(f *factory, c *cobra.Command, change func(*fleetrepo.Repo, string, fleetrepo.FeatureOptions) (*fleetrepo.Edit, error)) *cobra.Command {
	var o changeFlags
	var options fleetrepo.FeatureOptions
	c.RunE = func(c *cobra.Command, args []string) error {
		return edit(c, f, &o, func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) { return change(r, args[0], options) })
	}
	c.Flags().StringSliceVar(&options.Environments, "environment", nil, "environment whose clusters it is about (default: all)")
	c.Flags().StringSliceVar(&options.Clusters, "cluster", nil, "workload cluster that it is about, instead of an environment")
	completeFlag(c, "environment", f.completeFrom(-1, environmentNames))
	addRenamed(c.Flags(), "on-cluster", "cluster")
	completeFlag(c, "cluster", f.completeFrom(-1, clusterNames))
	o.add(c)
	takes(f, c, ofFeature)
	return c
}

func newFeatureListCmd(f *factory) *cobra.Command {
	return newListCmd(f, "feature", "List the features, and who has them", (*fleetrepo.Repo).Features, func(all []fleetrepo.Feature) any {
		return struct {
			FormatVersion string              `json:"formatVersion"`
			Features      []fleetrepo.Feature `json:"features"`
		}{"1", all}
	}, featureTable)
}

var featureTable = table[fleetrepo.Feature]{
	none: "There are no features; `fleetctl feature add` makes one.",
	name: func(o fleetrepo.Feature) string { return o.Name },
	columns: []column[fleetrepo.Feature]{
		{title: "FEATURE", of: func(o fleetrepo.Feature) string { return o.Name }},
		{title: "ENVIRONMENTS", of: func(o fleetrepo.Feature) string { return strings.Join(o.Environments, ", ") }},
		{title: "CLUSTERS", of: func(o fleetrepo.Feature) string { return strings.Join(o.Clusters, ", ") }},
		{title: "FOLDER", wide: true, of: func(o fleetrepo.Feature) string { return path.Join(layout.FeaturesDir, o.Name) }},
	},
}

func featureNames(r *fleetrepo.Repo, _ []string) []string { return r.FeatureNames() }
