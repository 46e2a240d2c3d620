package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/views"
)

func newTenantCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use: "tenant", Short: "List, add and remove tenants: teams with their own namespace",
		Long: `A tenant is a team with its own namespace on every cluster of an environment. The namespace comes with a quota, limits, a
network policy that allows only DNS, a service account under which Flux applies the tenant's manifests, and a role for the tenant's
people.`,
	}
	c.AddCommand(newTenantAddCmd(f), newTenantListCmd(f), newTenantRemoveCmd(f))
	return c
}

// tenantAddOptions are the flags of tenant add.
type tenantAddOptions struct {
	changeFlags
	named
	tenant fleetrepo.TenantOptions
	source scaffold.AppSource
}

func (o *tenantAddOptions) complete(f *factory, args ...string) error {
	if o.source != (scaffold.AppSource{}) {
		o.tenant.Source = &o.source
	}
	return o.named.complete(f, args...)
}

func (o *tenantAddOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return r.AddTenant(o.name, o.tenant)
}

func newTenantAddCmd(f *factory) *cobra.Command {
	o := &tenantAddOptions{}
	options := &o.tenant
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a tenant to environments",
		Long: `Add a tenant to the named environments, or to all. The manifests for all environments go into tenants/<cloud>/common, the
ones for one environment into tenants/<cloud>/<environment>. You may change both. The tenant's people may do everything in their namespace;
in production they may only look. Each cluster's own Flux applies the manifests.

With --source, the tenant starts with an application of the same name: see ` + "`fleetctl app add`" + `, which adds others.` + editing,
		Example: `  fleetctl tenant add shop --group shop-developers --push
  fleetctl tenant add shop --source https://github.com/acme/shop --path deploy --push
  fleetctl tenant add shop --environment staging --role edit`,
		RunE: running(f, o, runEdit),
	}
	c.Flags().StringSliceVar(&options.Environments, "environment", nil, "environment to add the tenant to (default: all)")
	c.Flags().StringVar(&options.Group, "group", "", "group of the tenant's people, as the clusters know it (default: the tenant's name)")
	c.Flags().StringVar(&options.Role, "role", "",
		"role of the tenant's people: admin, edit or view (default: view in production, admin elsewhere)")
	completeFlag(c, "environment", f.completeFrom(-1, environmentNames))
	addSource(c, &o.source)
	completeFlag(c, "role", cobra.FixedCompletions([]string{"admin", "edit", "view"}, cobra.ShellCompDirectiveNoFileComp))
	o.add(c)
	takes(f, c, argument{what: "tenant"})
	return c
}

// tenantRemoveOptions are the flags of tenant remove.
type tenantRemoveOptions struct {
	changeFlags
	named
	environments []string
	yes          bool
}

func (o *tenantRemoveOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return r.RemoveTenant(o.name, o.environments)
}

func runTenantRemove(ctx context.Context, f *factory, o *tenantRemoveOptions) error {
	options := change.Options{Edit: o.edit}
	if !o.yes {
		options.Confirm = func(e *fleetrepo.Edit) error {
			return ui.ConfirmTyped(f.streams, strings.Join(e.Notes, "\n")+"\n", o.name, "--yes")
		}
	}
	return runChange(ctx, f, &o.changeFlags, options)
}

func newTenantRemoveCmd(f *factory) *cobra.Command {
	o := &tenantRemoveOptions{}
	c := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a tenant, and everything that runs in its namespace",
		Long: `Remove a tenant from the named environments, or from all. Flux then deletes its namespace with everything that runs and is
stored in it. The command asks for the tenant's name.` + editing,
		Example: `  fleetctl tenant remove shop --environment staging --push
  fleetctl tenant remove shop --yes --push`,
		RunE: running(f, o, runTenantRemove),
	}
	c.Flags().StringSliceVar(&o.environments, "environment", nil, "environment to remove it from (default: all)")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	completeFlag(c, "environment", f.completeFrom(-1, environmentNames))
	o.add(c)
	takes(f, c, argument{what: "tenant", choices: tenantNames})
	return c
}

func newTenantListCmd(f *factory) *cobra.Command {
	return newListCmd(f, "tenant", "List the tenants, their environments, and what their people may do",
		(*fleetrepo.Repo).Tenants, views.Tenants)
}

func tenantNames(r *fleetrepo.Repo, _ []string) []string { return r.TenantNames() }
