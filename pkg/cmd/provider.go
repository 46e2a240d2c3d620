package cmd

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

func newProviderCmd(f *factory) *cobra.Command {
	c := &cobra.Command{Use: "provider", Short: "List and add the Cluster API providers of the management clusters"}
	c.AddCommand(newProviderAddCmd(f), newProviderListCmd(f))
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
  fleetctl provider add in-cluster --type ipam --cluster platform`,
		RunE: func(c *cobra.Command, args []string) error {
			given, err := parseProviders(args)
			if err != nil {
				return err
			}
			provider := v1alpha1.Provider{Name: given[0].Name, Version: given[0].Version, Type: v1alpha1.ProviderType(providerType)}
			return edit(c, f, &o, func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) { return r.AddProvider(f.flags.cluster, provider) })
		},
	}
	var types []string
	for _, t := range v1alpha1.ProviderTypes() {
		types = append(types, string(t))
	}
	c.Flags().StringVar(&providerType, "type", string(v1alpha1.ProviderInfrastructure), "type of the provider")
	completeFlag(c, "type", cobra.FixedCompletions(types, cobra.ShellCompDirectiveNoFileComp))
	o.add(c)
	takes(f, c, argument{what: "provider", choices: func(*fleetrepo.Repo, []string) []string { return scaffold.Providers() }, open: true})
	return c
}

func newProviderListCmd(f *factory) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the providers that fleet.yaml names",
		Example: "  fleetctl provider list -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			repo, err := f.fleetRepo()
			if err != nil {
				return err
			}
			result := struct {
				FormatVersion string               `json:"formatVersion"`
				Providers     []fleetrepo.Provider `json:"providers"`
			}{"1", repo.Providers()}
			return ui.Print(f.streams, f.format, result, func(w io.Writer) error { return providerView(w, result.Providers) })
		},
	}
}

func providerView(w io.Writer, all []fleetrepo.Provider) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "There are no providers; `fleetctl provider add` lists one.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MANAGEMENT CLUSTER\tPROVIDER\tTYPE\tVERSION")
	for _, p := range all {
		version := p.Version
		if version == "" {
			version = "init chooses"
		}
		ui.Fprintf(t, "%s\t%s\t%s\t%s\n", p.ManagementCluster, p.Name, p.Type, version)
	}
	return t.Flush()
}
