package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/resolve"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/views"
)

func newFeatureCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use: "feature", Short: "List, add, enable, disable and remove features: add-ons of the platform",
		Long: `A feature is an add-on of the platform: objects in features/<feature>. One folder holds the objects in the feature's
namespace, another the objects that only the platform may own. Environments or single clusters enable it.`,
	}
	c.AddCommand(newFeatureAddCmd(f), newFeatureListCmd(f), newFeatureEnableCmd(f), newFeatureDisableCmd(f), newFeatureValuesCmd(f),
		newFeatureRemoveCmd(f))
	addPausing(f, c, "Stop changes of a feature in Git from reaching clusters", "Let changes of a paused feature in Git reach clusters again",
		func(c *cobra.Command) pausing {
			return featurePausing(featureSwitchTargets(f, c))
		})
	return c
}

func featurePausing(options func() fleetrepo.FeatureOptions) pausing {
	return pausing{
		noun: "feature", what: ofFeature,
		byCommit: func(r *fleetrepo.Repo, name string, paused bool) (*fleetrepo.Edit, error) {
			return r.PauseFeature(name, options(), paused)
		},
		atOnce: func(r *fleetrepo.Repo, name string) ([]fleetrepo.FluxObject, error) {
			return r.PausedByFeature(name, options())
		},
	}
}

// featureAddOptions are the flags of feature add.
type featureAddOptions struct {
	changeFlags
	named
	chart  scaffold.FeatureChart
	values setFlags
	bundle string
	digest fleetrepo.ChartDigest
}

func (o *featureAddOptions) complete(f *factory, args ...string) (err error) {
	o.name = args[0]
	if o.chart.URL != "" {
		o.chart.Values, err = o.values.values(f)
		return err
	}
	if about := f.typedAmong([]string{"version", "values", "set", "bundle"}); len(about) > 0 {
		return diag.Usage("give --chart as well", "--%s is about a chart", about[0])
	}
	return nil
}

func (o *featureAddOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	if o.chart.URL == "" {
		return r.AddFeature(o.name)
	}
	return r.AddFeatureChart(o.name, o.chart, o.digest)
}

func runFeatureAdd(ctx context.Context, f *factory, o *featureAddOptions) error {
	if o.chart.URL == "" { // there is no chart to look for in a bundle
		return runEdit(ctx, f, o)
	}
	cacheDir, err := f.cacheDir()
	if err != nil {
		return err
	}
	charts, err := resolve.OpenCharts(ctx, f.report(), o.bundle, cacheDir)
	if err != nil {
		return err
	}
	defer func() { _ = charts.Close() }() // temporary files
	o.digest = func(chart v1alpha1.LockedFeature) (string, error) { return charts.Digest(ctx, chart) }
	return runEdit(ctx, f, o)
}

func newFeatureAddCmd(f *factory) *cobra.Command {
	o := &featureAddOptions{}
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a feature: empty, or from a Helm chart",
		Long: `Add a feature: the folders for its objects, with a namespace. No cluster gets it before you enable it.

With --chart, the feature is a Helm chart: its source, its HelmRelease, and a ConfigMap with the values for all clusters. ` +
			"`fleetctl feature values`" + `
sets other values for environments and clusters. The same command with another --version upgrades the feature.

If the repo has a fleet.lock, the command also writes the digest of the chart to it. The chart comes from --bundle, or else over the
network. If it cannot be read within a few seconds, the digest is left to ` + "`fleetctl lock`." + editing,
		Example: `  fleetctl feature add ingress
  fleetctl feature add cert-manager --chart https://charts.jetstack.io/cert-manager --version v1.19.1 --set crds.enabled=true
  fleetctl feature add podinfo --chart oci://ghcr.io/stefanprodan/charts/podinfo --version 6.9.2`,
		RunE: running(f, o, runFeatureAdd),
	}
	c.Flags().StringVar(&o.chart.URL, "chart", "", "Helm chart of the feature: oci://registry/path/chart or https://repository/chart")
	c.Flags().StringVar(&o.chart.Version, "version", "", "version of the chart")
	c.Flags().StringVar(&o.bundle, "bundle", "", "offline bundle that has the chart (folder or .tar.zst)")
	o.values.add(c)
	o.add(c)
	takes(f, c, argument{what: "feature"})
	return c
}

// setFlags are values of a chart, as a file and one by one.
type setFlags struct {
	file string
	set  []string
}

func (o *setFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&o.file, "values", "", "file of values of the chart")
	c.Flags().StringArrayVar(&o.set, "set", nil, "value of the chart, path=value; several times")
}

// values returns the values of the file, overridden by the values of --set.
func (o *setFlags) values(f *factory) (map[string]any, error) {
	values := map[string]any{}
	if o.file != "" {
		content, err := readInput(f, o.file, "the values", "--values")
		if err != nil {
			return nil, err
		}
		if values, err = fleetrepo.ParseValues(o.file, content); err != nil {
			return nil, err
		}
	}
	set, err := fleetrepo.ParseAssignments(o.set)
	if err != nil {
		return nil, err
	}
	return fleetrepo.Assign(values, set)
}

// featureValuesOptions are the flags of feature values.
type featureValuesOptions struct {
	changeFlags
	named
	targets     func() fleetrepo.FeatureOptions
	set         []string
	assignments []fleetrepo.Assignment
}

func (o *featureValuesOptions) complete(_ *factory, args ...string) (err error) {
	o.name = args[0]
	if len(o.set) == 0 {
		return diag.Usage("give --set path=value", "there is nothing to set")
	}
	o.assignments, err = fleetrepo.ParseAssignments(o.set)
	return err
}

func (o *featureValuesOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return r.SetFeatureValues(o.name, o.targets(), o.assignments)
}

func newFeatureValuesCmd(f *factory) *cobra.Command {
	o := &featureValuesOptions{}
	c := &cobra.Command{
		Use:   "values NAME",
		Short: "Set values of a feature's chart for environments, clusters or management clusters",
		Long: `Set values of a feature's chart: for every cluster of the named environments (all if none is named), for single clusters, or
for management clusters. They go into a ConfigMap in the folder common/namespaced of the environment, namespaced of the cluster, or
namespaced of the management cluster's own folder, and override the feature's own values.` + editing,
		Example: `  fleetctl feature values ingress --environment staging --set controller.replicaCount=2 --push
  fleetctl feature values ingress --cluster shop --set controller.kind=DaemonSet
  fleetctl feature values backup --on-management --set schedule=hourly`,
		RunE: running(f, o, runEdit),
	}
	c.Flags().StringArrayVar(&o.set, "set", nil, "value of the chart, path=value; several times")
	o.targets = featureTargets(f, c, "set them for management clusters themselves: all, or one with --on-management=NAME")
	o.add(c)
	takes(f, c, ofFeature)
	return c
}

func newFeatureEnableCmd(f *factory) *cobra.Command {
	return newFeatureSwitchCmd(f, &cobra.Command{
		Use:   "enable NAME",
		Short: "Enable a feature for environments or clusters",
		Long: `Enable a feature on every cluster of the named environments (all if none is named), on single clusters, or on management
clusters. Each cluster's own Flux applies the features of its environment. The management cluster applies the features of a
single cluster.` + editing,
		Example: `  fleetctl feature enable ingress --environment staging --push
  fleetctl feature enable gpu --cluster train-1
  fleetctl feature enable backup --on-management --push`,
	}, (*fleetrepo.Repo).EnableFeature)
}

func newFeatureDisableCmd(f *factory) *cobra.Command {
	return newFeatureSwitchCmd(f, &cobra.Command{
		Use:     "disable NAME",
		Short:   "Disable a feature for environments or clusters",
		Long:    "Disable a feature for the named environments or clusters, or everywhere. Flux then deletes its objects there." + editing,
		Example: "  fleetctl feature disable ingress --environment staging --push",
	}, (*fleetrepo.Repo).DisableFeature)
}

func newFeatureRemoveCmd(f *factory) *cobra.Command {
	return newRemoveCmd(f, &cobra.Command{
		Short:   "Remove a feature that is enabled nowhere",
		Long:    "Remove a feature with all its files. Disable it everywhere first: `fleetctl feature disable`." + editing,
		Example: "  fleetctl feature remove ingress --dry-run",
	}, ofFeature, (*fleetrepo.Repo).RemoveFeature)
}

// everyManagement is the value of --on-management without a name. It is not a valid name of a cluster.
const everyManagement = "*"

func newFeatureSwitchCmd(
	f *factory,
	c *cobra.Command,
	change func(*fleetrepo.Repo, string, fleetrepo.FeatureOptions) (*fleetrepo.Edit, error),
) *cobra.Command {
	o := &featureSwitchOptions{change: change, targets: featureSwitchTargets(f, c)}
	c.RunE = running(f, o, runEdit)
	o.add(c)
	takes(f, c, ofFeature)
	return c
}

// featureSwitchOptions are the flags of feature enable and feature disable.
type featureSwitchOptions struct {
	changeFlags
	named
	change  func(*fleetrepo.Repo, string, fleetrepo.FeatureOptions) (*fleetrepo.Edit, error)
	targets func() fleetrepo.FeatureOptions
}

func (o *featureSwitchOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return o.change(r, o.name, o.targets())
}

// featureSwitchTargets adds the flags of featureTargets to a command that enables, disables or pauses a feature.
func featureSwitchTargets(f *factory, c *cobra.Command) (options func() fleetrepo.FeatureOptions) {
	options = featureTargets(f, c, "apply it to management clusters themselves: all, or one with --on-management=NAME")
	addRenamed(c.Flags(), "on-cluster", "cluster")
	return options
}

// featureTargets adds the flags for the targets of a feature. onManagement is the usage of the flag for management clusters. options
// returns the targets.
func featureTargets(f *factory, c *cobra.Command, onManagement string) (options func() fleetrepo.FeatureOptions) {
	given := &fleetrepo.FeatureOptions{}
	management := ""
	c.Flags().StringSliceVar(&given.Environments, "environment", nil, "environment whose clusters to change (default: all)")
	c.Flags().StringSliceVar(&given.Clusters, "cluster", nil, "workload cluster to change, instead of an environment")
	c.Flags().StringVar(&management, "on-management", "", onManagement)
	c.Flags().Lookup("on-management").NoOptDefVal = everyManagement
	completeFlag(c, "environment", f.completeFrom(-1, environmentNames))
	completeFlag(c, "cluster", f.completeFrom(-1, clusterNames))
	completeFlag(c, "on-management", f.completeFrom(-1, ofManagement.choices))
	return func() fleetrepo.FeatureOptions {
		out := *given
		if out.Management = c.Flags().Changed("on-management"); out.Management && management != everyManagement {
			out.ManagementCluster = management
		}
		return out
	}
}

func newFeatureListCmd(f *factory) *cobra.Command {
	return newListCmd(f, "feature", "List the features, and where they are enabled", (*fleetrepo.Repo).Features, views.Features)
}

func featureNames(r *fleetrepo.Repo, _ []string) []string { return r.FeatureNames() }
