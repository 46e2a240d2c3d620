package cmd

import (
	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/version"
)

func newCICmd(f *factory) *cobra.Command {
	c := &cobra.Command{Use: "ci", Short: "Add the pipeline that reviews pull requests of the fleet repo"}
	c.AddCommand(newCIAddCmd(f))
	return c
}

// ciAddOptions are the flags of ci add.
type ciAddOptions struct {
	changeFlags
	asGiven
}

func (o *ciAddOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return r.AddCI(v1alpha1.ForgeType(o.forge), version.Released())
}

func newCIAddCmd(f *factory) *cobra.Command {
	o := &ciAddOptions{}
	c := &cobra.Command{
		Use:   "add",
		Short: "Add a pipeline that validates pull requests and tells their effect, and Renovate",
		Long: `Add a workflow for GitHub or Gitea, or a pipeline for GitLab, that runs fleetctl validate and fleetctl diff on each
pull request, and the configuration with which Renovate keeps Flux, the providers and charts current. Existing files
stay as they are.` + editing,
		Example: `  fleetctl ci add --pr
  fleetctl ci add --forge gitlab --dry-run`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runEdit),
	}
	o.add(c)
	return c
}
