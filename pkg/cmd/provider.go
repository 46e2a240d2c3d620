package cmd

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/views"
)

func newProviderCmd(f *factory) *cobra.Command {
	c := &cobra.Command{Use: "provider", Short: "List, add and remove the Cluster API providers of the management clusters"}
	c.AddCommand(newProviderAddCmd(f), newProviderListCmd(f), newProviderRemoveCmd(f))
	return c
}

// providerOptions are the flags of provider add and provider remove.
type providerOptions struct {
	changeFlags
	management string
	provider   v1alpha1.Provider
}

func (o *providerOptions) complete(f *factory, args ...string) error {
	o.management, o.provider.Name = f.flags.management, args[0]
	return nil
}

// providerTypes are all types of providers.
func providerTypes() []string {
	var types []string
	for _, t := range v1alpha1.ProviderTypes() {
		types = append(types, string(t))
	}
	return types
}

// providerAddOptions are the flags of provider add.
type providerAddOptions struct{ providerOptions }

func (o *providerAddOptions) complete(f *factory, args ...string) error {
	given, err := parseProviders(args)
	if err != nil {
		return err
	}
	o.management, o.provider.Name, o.provider.Version = f.flags.management, given[0].Name, given[0].Version
	return nil
}

func (o *providerAddOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return components.AddProvider(o.management, o.provider)(r)
}

func newProviderAddCmd(f *factory) *cobra.Command {
	o := &providerAddOptions{}
	c := &cobra.Command{
		Use:   "add NAME[:VERSION]",
		Short: "Add a provider to a management cluster, or change its version",
		Long: `Add a provider to a management cluster in fleet.yaml, or change its version there, and add the charts of its flavours of
clusters. Without a version, fleetctl init chooses one when it installs the provider.` + editing,
		Example: `  fleetctl provider add aws:v2.13.0 --commit
  fleetctl provider add in-cluster --type ipam --management platform`,
		RunE: running(f, o, runEdit),
	}
	f.addManagement(c)
	addProviderType(c, &o.provider.Type, v1alpha1.ProviderInfrastructure, "type of the provider")
	o.add(c)
	takes(f, c, argument{what: "provider", choices: func(*fleetrepo.Repo, []string) []string { return scaffold.Providers() }, open: true})
	c.ValidArgsFunction = o.completeKnown(f)
	return c
}

// completeKnown completes the name, and the version, of a provider of the type in --type.
func (o *providerOptions) completeKnown(f *factory) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f.providersFor(toComplete, o.provider.Type), cobra.ShellCompDirectiveNoFileComp
	}
}

// addProviderType adds the flag for the type of a provider. otherwise is its default.
func addProviderType(c *cobra.Command, into *v1alpha1.ProviderType, otherwise v1alpha1.ProviderType, usage string) {
	c.Flags().StringVar((*string)(into), "type", string(otherwise), usage)
	completeFlag(c, "type", cobra.FixedCompletions(providerTypes(), cobra.ShellCompDirectiveNoFileComp))
}

func newProviderRemoveCmd(f *factory) *cobra.Command {
	o := &providerRemoveOptions{}
	c := &cobra.Command{
		Use:   "remove NAME[:VERSION]",
		Short: "Remove a provider from a management cluster in fleet.yaml",
		Long: `Remove a provider of a management cluster from fleet.yaml and fleet.lock, and its charts if no cluster uses them and nobody
has changed them. The command refuses while clusters of that management cluster need the provider. The installed provider stays on the
management cluster until you remove it there.` + editing,
		Example: `  fleetctl provider remove aws --commit
  fleetctl provider remove in-cluster --management platform`,
		RunE: running(f, o, runEdit),
	}
	o.add(c)
	f.addManagement(c)
	addProviderType(c, &o.provider.Type, "", "type of the provider, if several have the name (default: infrastructure, or the only one)")
	takes(f, c, argument{
		what: "provider",
		choices: func(r *fleetrepo.Repo, _ []string) []string {
			return providerNames(r, f.flags.management, o.provider.Type)
		},
	})
	return c
}

// providerRemoveOptions are the flags of provider remove.
type providerRemoveOptions struct {
	providerOptions
	f *factory
}

// complete also takes NAME:VERSION, as provider add does.
func (o *providerRemoveOptions) complete(f *factory, args ...string) error {
	if t := string(o.provider.Type); t != "" && !slices.Contains(providerTypes(), t) {
		return diag.Usage(diag.Among(t, providerTypes()), "--type: unknown provider type %q", t)
	}
	o.f, o.management = f, f.flags.management
	o.provider.Name, o.provider.Version, _ = strings.Cut(args[0], ":")
	return nil
}

// edit is the edit of fleetrepo, which knows the clusters of charts only. It refuses for clusters of plain manifests too, whose provider is
// known by the kind of their infrastructure.
func (o *providerRemoveOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	e, err := r.RemoveProvider(o.management, o.provider)
	if err != nil || o.provider.Type != "" && o.provider.Type != v1alpha1.ProviderInfrastructure {
		return e, err
	}
	m, err := r.Fleet.ManagementCluster(o.management)
	if err != nil {
		return nil, err
	}
	return e, o.f.refuseManifests(r, "provider "+o.provider.Name, func(c fleetrepo.Cluster) bool {
		return c.ManagementCluster == m.Name && fleetrepo.ProviderOfKind(c.Flavour) == o.provider.Name
	})
}

// providerNames are the providers of a type that fleet.yaml lists for a management cluster, or for all of them if cluster is empty. An
// empty type stands for all types.
func providerNames(r *fleetrepo.Repo, cluster string, of v1alpha1.ProviderType) []string {
	var names []string
	for _, p := range r.Providers() {
		wanted := (cluster == "" || p.ManagementCluster == cluster) && (of == "" || p.Type == of)
		if wanted && !slices.Contains(names, p.Name) {
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
