package cmd

import (
	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/views"
)

func newAppCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use: "app", Short: "List, add and remove applications that come from repositories of their own",
		Long: `An application belongs to a tenant and comes from a Git repository of its own, which its team changes without the platform's. Flux on each cluster
that has the tenant applies it: as the tenant's account, in the tenant's namespace and nowhere else, within the tenant's quota and limits.`,
	}
	c.AddCommand(newAppAddCmd(f), newAppListCmd(f), newAppRemoveCmd(f))
	return c
}

// addSource adds the flags that say where an application comes from.
func addSource(c *cobra.Command, s *scaffold.AppSource) {
	fs := c.Flags()
	fs.StringVar(&s.URL, "source", "", "Git repository that it comes from: https or ssh")
	fs.StringVar(&s.Branch, "branch", "", "branch of the repository (default: main)")
	fs.StringVar(&s.Tag, "tag", "", "tag of the repository, instead of a branch")
	fs.StringVar(&s.SemVer, "semver", "", "range of versions among its tags, instead of a branch: the highest is applied")
	fs.StringVar(&s.Path, "path", "", "folder in the repository (default: its top)")
	fs.StringVar(&s.Secret, "secret", "", "Secret of the tenant's namespace with what the repository asks for")
}

func newAppAddCmd(f *factory) *cobra.Command {
	var o changeFlags
	var source scaffold.AppSource
	var tenant string
	var environments []string
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Add an application from a repository of its own",
		Long: `Add an application of a tenant from a Git repository: its source, and the Flux Kustomization that applies a folder of it. It gets one file for each
environment, in tenants/<cloud>/<environment>/<tenant>, so that environments may differ in the revision.` + editing,
		Example: `  fleetctl app add web --tenant shop --source https://github.com/acme/web --path deploy --push
  fleetctl app add web --tenant shop --environment production --source https://github.com/acme/web --semver '>=1.0.0' --push`,
		RunE: func(c *cobra.Command, args []string) error {
			if tenant == "" {
				return diag.Usage("give --tenant; `fleetctl tenant list` shows them", "the tenant of the application is missing")
			}
			return edit(c, f, &o, func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
				return r.AddApp(tenant, args[0], source, environments)
			})
		},
	}
	addSource(c, &source)
	c.Flags().StringVar(&tenant, "tenant", "", "tenant whose it is (required)")
	c.Flags().StringSliceVar(&environments, "environment", nil, "environment to add it to (default: all that have the tenant)")
	completeFlag(c, "tenant", f.completeFrom(-1, tenantNames))
	completeFlag(c, "environment", f.completeFrom(-1, environmentNames))
	o.add(c)
	takes(f, c, argument{what: "application"})
	return c
}

func newAppRemoveCmd(f *factory) *cobra.Command {
	var tenant string
	var environments []string
	c := newRemoveCmd(f, &cobra.Command{
		Short:   "Remove an application from environments",
		Long:    "Remove an application from environments, from all where none is named. Flux then deletes what it has applied of it." + editing,
		Example: "  fleetctl app remove web --tenant shop --environment staging --push",
	}, argument{what: "application", choices: func(r *fleetrepo.Repo, _ []string) []string { return r.AppNames() }}, func(r *fleetrepo.Repo, name string) (*fleetrepo.Edit, error) {
		if tenant == "" {
			return nil, diag.Usage("give --tenant; `fleetctl app list` shows it", "the tenant of the application is missing")
		}
		return r.RemoveApp(tenant, name, environments)
	})
	c.Flags().StringVar(&tenant, "tenant", "", "tenant whose it is (required)")
	c.Flags().StringSliceVar(&environments, "environment", nil, "environment to remove it from (default: all)")
	completeFlag(c, "tenant", f.completeFrom(-1, tenantNames))
	completeFlag(c, "environment", f.completeFrom(-1, environmentNames))
	return c
}

func newAppListCmd(f *factory) *cobra.Command {
	return newListCmd(f, "app", "List the applications that come from repositories of their own", (*fleetrepo.Repo).Apps, views.Apps)
}
