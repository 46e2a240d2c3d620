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
		Use: "app", Short: "List, add and remove applications that come from their own repositories",
		Long: `An application belongs to a tenant and comes from its own Git repository, which the team changes without touching the
fleet repo. Flux on each cluster of the tenant applies the application as the tenant's service account, only in the
tenant's namespace, and within the tenant's quota and limits.`,
	}
	c.AddCommand(newAppAddCmd(f), newAppListCmd(f), newAppRemoveCmd(f))
	return c
}

// addSource adds the flags for the repository of an application.
func addSource(c *cobra.Command, s *scaffold.AppSource) {
	fs := c.Flags()
	fs.StringVar(&s.URL, "source", "", "Git repository of the application: https or ssh")
	fs.StringVar(&s.Branch, "branch", "", "branch of the repository (default: main)")
	fs.StringVar(&s.Tag, "tag", "", "tag of the repository, instead of a branch")
	fs.StringVar(&s.SemVer, "semver", "", "range of versions among the repository's tags, instead of a branch: the highest is applied")
	fs.StringVar(&s.Path, "path", "", "folder in the repository (default: its top)")
	fs.StringVar(&s.Secret, "secret", "", "Secret in the tenant's namespace with the credentials of the repository")
}

// appOptions are the flags of app add and app remove.
type appOptions struct {
	changeFlags
	named
	tenant       string
	environments []string
	source       scaffold.AppSource
}

// addTarget adds the flags for the tenant and the environments of an application.
func (o *appOptions) addTarget(f *factory, c *cobra.Command, environments string) {
	c.Flags().StringVar(&o.tenant, "tenant", "", "tenant that the application belongs to (required)")
	c.Flags().StringSliceVar(&o.environments, "environment", nil, environments)
	completeFlag(c, "tenant", f.completeFrom(-1, tenantNames))
	completeFlag(c, "environment", f.completeFrom(-1, environmentNames))
}

func (o *appOptions) complete(f *factory, args ...string) error {
	if o.tenant == "" {
		return diag.Usage("give --tenant; `fleetctl tenant list` shows them", "the tenant of the application is missing")
	}
	return o.named.complete(f, args...)
}

func (o *appOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return r.AddApp(o.tenant, o.name, o.source, o.environments)
}

func newAppAddCmd(f *factory) *cobra.Command {
	o := &appOptions{}
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Add an application from its own repository",
		Long: `Add an application of a tenant. It comes from a Git repository: the command writes the source, and the Flux
Kustomization that applies a folder of this repository. Each environment gets its own file, in
tenants/<cloud>/<environment>/<tenant>, so environments can have different revisions.` + editing,
		Example: `  fleetctl app add web --tenant shop --source https://github.com/acme/web --path deploy --push
  fleetctl app add web --tenant shop --environment production --source https://github.com/acme/web --semver '>=1.0.0' --push`,
		RunE: running(f, o, runEdit),
	}
	addSource(c, &o.source)
	o.addTarget(f, c, "environment to add the application to (default: all that have the tenant)")
	o.add(c)
	takes(f, c, argument{what: "application"})
	return c
}

func newAppRemoveCmd(f *factory) *cobra.Command {
	o := &appRemoveOptions{}
	c := &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove an application from environments",
		Long:    "Remove an application from the named environments, or from all. Flux then deletes the objects of the application." + editing,
		Example: "  fleetctl app remove web --tenant shop --environment staging --push",
		RunE:    running(f, o, runEdit),
	}
	o.add(c)
	o.addTarget(f, c, "environment to remove it from (default: all)")
	takes(f, c, argument{what: "application", command: "app", choices: func(r *fleetrepo.Repo, _ []string) []string { return r.AppNames() }})
	return c
}

// appRemoveOptions are the flags of app remove.
type appRemoveOptions struct{ appOptions }

func (o *appRemoveOptions) complete(f *factory, args ...string) error {
	if o.tenant == "" {
		return diag.Usage("give --tenant; `fleetctl app list` shows it", "the tenant of the application is missing")
	}
	return o.named.complete(f, args...)
}

func (o *appRemoveOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return r.RemoveApp(o.tenant, o.name, o.environments)
}

func newAppListCmd(f *factory) *cobra.Command {
	return newListCmd(f, "app", "List the applications that come from their own repositories", (*fleetrepo.Repo).Apps, views.Apps)
}
