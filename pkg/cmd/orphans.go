package cmd

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/fromvault"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/orphans"
	"github.com/fleetctl/fleetctl/pkg/reclaim"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// orphansOptions are the flags of orphans.
type orphansOptions struct {
	regions     []string
	runCommands bool
	timeout     time.Duration
	remove      string
	gone        []string
	dryRun, yes bool
	git         change.Credentials
	tokenFile   string
}

// The default timeouts of looking and of deleting.
const (
	orphansTimeout       = 5 * time.Minute
	deleteOrphansTimeout = time.Hour
)

func (o *orphansOptions) complete(*factory, ...string) (err error) {
	o.git.Token, err = readToken(o.tokenFile)
	return err
}

func newOrphansCmd(f *factory) *cobra.Command {
	o := &orphansOptions{}
	c := listFormats(&cobra.Command{
		Use:   "orphans",
		Short: "List and delete the fleet's resources in a cloud that no management cluster manages any more",
		Long: `List the cloud resources of the fleet's clusters that no reachable management cluster owns. Such resources are, for
example, machines that still run and cost money after their management cluster is gone. fleetctl asks AWS in every
region of the account, and the vCenters in the environment variable VSPHERE_SERVER. It uses the credentials that
"fleetctl init" gives to the provider. With these it also assumes the roles that clusters use in other accounts of AWS,
and asks these accounts. It reads the keys of static identities of AWS from their Secrets on the management clusters. It
names each account that it cannot ask.

A resource belongs to this fleet if it has the tag ` + v1alpha1.FleetTag + `, or in vSphere the advanced setting ` + v1alpha1.FleetKey + `,
or is in a network with this tag. "fleetctl cluster add" sets this tag for every cluster. If the tags of a resource name a cluster but no
fleet, the list shows the resource with proof "none", because it may belong to another fleet. The command counts the resources with another
fleet's tag, and does not show them.

Look at each resource before you delete it. Its tags may come from a copied fleet repo, from a cluster that was detached, or from a network
that other clusters use.

With --delete, the command deletes the orphans of one cluster, in the order that the cloud needs. First you type the cluster's name. The
command deletes only resources with a proof that they are this fleet's. It looks again right before it deletes, and asks the management
clusters once more before each kind of resource. After an interruption, run it again.

The command refuses to delete while a management cluster does not answer, because that management cluster may own the cluster. If the
management cluster no longer exists, name it with --gone, and type its name, too. A management cluster that answers is not gone, even if it
is half made or in the middle of a restore or hand-over.

The command also refuses to delete
- if the fleet repo still declares the cluster;
- if the working copy differs from the remote of the fleet repo;
- if the cloud did not answer everything;
- if somebody else uses the cluster's network.

Exit codes: 0 there are no orphans, and every cloud and management cluster answered; 3 there are orphans, or something did not answer. A
fleet with a provider whose cloud the command cannot list also ends with 3, unless --region says what to ask. So does a
fleet with clusters in an account that cannot be asked. With
--delete: 0 nothing of the cluster is left; 3 something is left.`,
		Example: `  fleetctl orphans
  fleetctl orphans --region eu-central-1 -o json
  fleetctl orphans --delete shop --gone mgmt`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runOrphans),
	})
	fs := c.Flags()
	fs.StringSliceVar(&o.regions, "region", nil, "ask only this region of AWS, or this vCenter; repeat for several (default: all)")
	fs.BoolVar(&o.runCommands, "run-commands", false, "run the commands of fleet.yaml that print credentials")
	fs.StringVar(&o.remove, "delete", "", "delete the orphans of this `cluster`")
	fs.StringSliceVar(&o.gone, "gone", nil,
		"with --delete: a management `cluster` that cannot be asked because it no longer exists; repeat for several")
	fs.BoolVar(&o.dryRun, "dry-run", false, "with --delete: show what it would delete, in order, and delete nothing")
	fs.BoolVarP(&o.yes, "yes", "y", false, "with --delete: do not ask")
	fs.StringVar(&o.tokenFile, "git-token-file", "",
		"with --delete: file with the token of an https remote (default: the environment variable FLEETCTL_GIT_TOKEN)")
	fs.StringVar(&o.git.SSHKeyFile, "ssh-key-file", "", "with --delete: private key for an ssh remote (default: the agent)")
	fs.DurationVar(&o.timeout, "timeout", 0, "give up after this time (default: 5m for looking, 1h for deleting)")
	return c
}

func runOrphans(ctx context.Context, f *factory, o *orphansOptions) error {
	deps, look, err := f.orphansOptions(o)
	if err != nil {
		return err
	}
	if o.remove != "" {
		return deleteOrphans(ctx, f, deps, look, o)
	}
	report, err := reclaim.Look(ctx, deps, look)
	giveBack(ctx, deps, look.Vault)
	if err != nil {
		return err
	}
	f.closeReporter()
	if err := f.show(views.Orphans(report, time.Now())); err != nil {
		return err
	}
	if report.Count() > 0 || !report.Complete {
		return silent()
	}
	return nil
}

func deleteOrphans(ctx context.Context, f *factory, deps management.Deps, look reclaim.Options, o *orphansOptions) error {
	look.Timeout = orphansTimeout
	result, err := reclaim.Delete(ctx, deps, look, reclaim.DeleteOptions{
		Cluster: o.remove, Gone: o.gone, Git: o.git, DryRun: o.dryRun, Timeout: cmp.Or(o.timeout, deleteOrphansTimeout),
		Confirm: func(d *orphans.Deletion) error { return f.agreeToDelete(d, o.gone, !o.yes) },
	})
	giveBack(ctx, deps, look.Vault)
	if err != nil {
		return err
	}
	f.closeReporter()
	if err := f.show(views.DeletedOrphans(result)); err != nil {
		return err
	}
	if len(result.Left) > 0 {
		return silent()
	}
	return nil
}

// agreeToDelete shows the resources to delete. If ask is true, it also asks for confirmation: that each management cluster in gone is gone,
// and then that the resources may be deleted.
func (f *factory) agreeToDelete(d *orphans.Deletion, gone []string, ask bool) error {
	if ask {
		f.closeReporter()
	}
	aside := f.streams
	aside.Out = aside.Err // standard output is only for the result
	if err := views.Print(aside, ui.Human, false, views.OrphansDeletion(d, time.Now())); err != nil || !ask {
		return err
	}
	for _, name := range gone {
		question := "The management cluster " + name +
			" does not answer, and you say that it is gone. If it still exists, switched off or out of reach " +
			"from here, it may own the cluster " + d.Cluster + " and need these resources."
		if err := ui.ConfirmTyped(f.streams, question, name, "--yes"); err != nil {
			return err
		}
	}
	return ui.ConfirmTyped(f.streams, "This deletes all remaining resources of the cluster "+d.Cluster+
		", with their data. It cannot be undone.", d.Cluster, "--yes")
}

// giveBack returns to Vault what was leased for this command. What Vault does not take back ends with its own time.
func giveBack(ctx context.Context, deps management.Deps, r *fromvault.Reader) {
	if err := r.GiveBack(ctx); err != nil {
		deps.Report.Warn(fmt.Sprintf("%v; it is still valid until it ends by itself", err))
	}
}

// orphansOptions returns the clouds and management clusters to look at.
func (f *factory) orphansOptions(o *orphansOptions) (management.Deps, reclaim.Options, error) {
	var look reclaim.Options
	repo, err := f.fleetRepo()
	if err != nil {
		return management.Deps{}, look, err
	}
	dir, err := f.repoDir()
	if err != nil {
		return management.Deps{}, look, err
	}
	deps, err := f.deps()
	if err != nil {
		return management.Deps{}, look, err
	}
	targets, err := f.allTargets()
	if err != nil {
		return management.Deps{}, look, err
	}
	if targets, err = reclaim.FleetTargets(f.store(), dir, targets); err != nil {
		return management.Deps{}, look, err
	}
	return deps, reclaim.Options{
		Repo: repo, Dir: dir, Targets: targets, Regions: o.regions, RunCommands: o.runCommands,
		Vault: fromvault.NewReader(dir, deps.LookupEnv), Timeout: cmp.Or(o.timeout, orphansTimeout),
	}, nil
}
