package cmd

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

func newEnvironmentCmd(f *factory) *cobra.Command {
	c := &cobra.Command{Use: "environment", Aliases: []string{"env"}, Short: "List and add the environments of the fleet"}
	c.AddCommand(newEnvironmentAddCmd(f), newEnvironmentListCmd(f))
	return c
}

func newEnvironmentAddCmd(f *factory) *cobra.Command {
	var o changeFlags
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Add an environment",
		Long: `Add an environment: list it in fleet.yaml, and make for each management cluster the folder of its clusters and the Flux
Kustomization that applies them.` + editing,
		Example: "  fleetctl environment add staging --push",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return edit(c, f, &o, func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) { return r.AddEnvironment(args[0]) })
		},
	}
	o.add(c)
	return c
}

func newEnvironmentListCmd(f *factory) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the environments, and how many clusters each has",
		Example: "  fleetctl environment list -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			repo, err := f.fleetRepo()
			if err != nil {
				return err
			}
			all, err := repo.Environments()
			if err != nil {
				return err
			}
			result := struct {
				FormatVersion string                  `json:"formatVersion"`
				Environments  []fleetrepo.Environment `json:"environments"`
			}{"1", all}
			return ui.Print(f.streams, f.format, result, func(w io.Writer) error { return environmentView(w, all) })
		},
	}
}

func environmentView(w io.Writer, all []fleetrepo.Environment) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "There are no environments; `fleetctl environment add` makes one.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ENVIRONMENT\tCLUSTERS")
	for _, e := range all {
		note := ""
		if !e.Declared {
			note = "\tnot listed in fleet.yaml"
		}
		fmt.Fprintf(t, "%s\t%d%s\n", e.Name, e.Clusters, note)
	}
	return t.Flush()
}
