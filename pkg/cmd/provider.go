package cmd

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/views"
)

func newProviderCmd(f *factory) *cobra.Command {
	c := &cobra.Command{Use: "provider", Short: "List, add and remove the Cluster API providers of the management clusters"}
	c.AddCommand(newProviderAddCmd(f), newProviderListCmd(f), newProviderRemoveCmd(f))
	return c
}

func newProviderAddCmd(f *factory) *cobra.Command {
	var o changeFlags
	var providerType string
	c := &cobra.Command{
		Use:   "add NAME[:VERSION]",
		Short: "Add a provider to a management cluster, or change its version",
		Long: `List a provider of a management cluster in fleet.yaml, or change its version there, and bring the charts of its flavours of clusters
along. Without a version, fleetctl init chooses one when it installs the provider.` + editing,
		Example: `  fleetctl provider add aws:v2.13.0 --commit
  fleetctl provider add in-cluster --type ipam --management platform`,
		RunE: func(c *cobra.Command, args []string) error {
			given, err := parseProviders(args)
			if err != nil {
				return err
			}
			provider := v1alpha1.Provider{Name: given[0].Name, Version: given[0].Version, Type: v1alpha1.ProviderType(providerType)}
			return edit(c, f, &o, lifecycle.AddProvider(f.flags.management, provider))
		},
	}
	f.addManagement(c)
	addProviderType(c, &providerType)
	o.add(c)
	takes(f, c, argument{what: "provider", choices: func(*fleetrepo.Repo, []string) []string { return scaffold.Providers() }, open: true})
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return lifecycle.KnownProviders(v1alpha1.ProviderType(providerType)), cobra.ShellCompDirectiveNoFileComp
	}
	return c
}

// addProviderType is the flag that says which type of provider is meant.
func addProviderType(c *cobra.Command, into *string) {
	var types []string
	for _, t := range v1alpha1.ProviderTypes() {
		types = append(types, string(t))
	}
	c.Flags().StringVar(into, "type", string(v1alpha1.ProviderInfrastructure), "type of the provider")
	completeFlag(c, "type", cobra.FixedCompletions(types, cobra.ShellCompDirectiveNoFileComp))
}

func newProviderRemoveCmd(f *factory) *cobra.Command {
	var providerType string
	c := newRemoveCmd(f, &cobra.Command{
		Short: "Remove a provider from a management cluster in fleet.yaml",
		Long: `Take a provider of a management cluster out of fleet.yaml and fleet.lock, and its charts where no cluster has them and nobody has changed
them. It refuses while clusters of that management cluster need the provider. What is installed stays until you take it off.` + editing,
		Example: `  fleetctl provider remove aws --commit
  fleetctl provider remove in-cluster --type ipam --management platform`,
	}, argument{what: "provider", choices: func(r *fleetrepo.Repo, _ []string) []string { return providerNames(r, f.flags.management) }},
		func(r *fleetrepo.Repo, name string) (*fleetrepo.Edit, error) {
			return r.RemoveProvider(f.flags.management, v1alpha1.Provider{Name: name, Type: v1alpha1.ProviderType(providerType)})
		})
	f.addManagement(c)
	addProviderType(c, &providerType)
	return c
}

// providerNames are those that fleet.yaml lists for a management cluster, or for any where that is empty.
func providerNames(r *fleetrepo.Repo, cluster string) []string {
	var names []string
	for _, p := range r.Providers() {
		if (cluster == "" || p.ManagementCluster == cluster) && !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	return names
}

func newProviderListCmd(f *factory) *cobra.Command {
	c := newListCmd(f, "provider", "List the providers that fleet.yaml names", func(r *fleetrepo.Repo) ([]fleetrepo.Provider, error) {
		return only(f, r, r.Providers(), func(p fleetrepo.Provider) string { return p.ManagementCluster })
	}, views.Providers)
	f.addManagementFilter(c)
	return c
}
