package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/resolve"
)

// lockOptions are the flags of lock.
type lockOptions struct {
	changeFlags
	bundle string
	check  bool
}

func (o *lockOptions) complete(*factory, ...string) error {
	if o.check && (o.commit || o.push) {
		return diag.Usage("leave out one of them", "--check changes nothing, so there is nothing to commit")
	}
	o.dryRun = o.dryRun || o.check
	return nil
}

func newLockCmd(f *factory) *cobra.Command {
	o := &lockOptions{}
	c := &cobra.Command{
		Use:   "lock",
		Short: "Write the digests of everything that the fleet installs to fleet.lock",
		Long: `Read the components of every provider, cert-manager and Flux in the versions of fleet.yaml, and write their digests to
fleet.lock, with the digests of the images that the components run and of the charts of features. Run this command
after you change a version in fleet.yaml or of a feature's chart. fleetctl init refuses a component with another digest,
and runs the locked images. So every management cluster runs the reviewed components, although releases carry no
signature.

--check exits with 3 if fleet.lock is out of date, and names each image and chart that differs. The manifests in a
bundle may differ from those in the release, so --check compares components from a bundle only with --bundle.

A provider without a version is left out, and a warning says so: fleetctl init chooses its version and adds its digest.

The components and the digests come from --bundle, or else over the network. The command pulls no image, and needs no cluster. It shows the
difference. --dry-run writes nothing, --commit commits the change, and --push also pushes it.`,
		Example: `  fleetctl lock --commit
  fleetctl lock --check        # in a pipeline`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runLock),
	}
	o.add(c)
	c.Flags().StringVar(&o.bundle, "bundle", "", "offline bundle that the components come from (folder or .tar.zst)")
	c.Flags().BoolVar(&o.check, "check", false, "change nothing, and exit with 3 if fleet.lock would change")
	return c
}

func runLock(ctx context.Context, f *factory, o *lockOptions) error {
	dir, err := f.repoDir()
	if err != nil {
		return err
	}
	cacheDir, err := f.cacheDir()
	if err != nil {
		return err
	}
	read, notes, err := resolve.ReadComponents(ctx, f.report(), dir, o.bundle, cacheDir, o.check)
	if err != nil {
		return err
	}
	changed := false
	err = runChange(ctx, f, &o.changeFlags, change.Options{Edit: func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
		e, err := r.Lock(read, notes...)
		changed = err == nil && !e.Changes.Empty()
		return e, err
	}})
	if err == nil && !changed { // if something has changed, the view shows the notes
		for _, note := range notes {
			f.report().Warn(note)
		}
	}
	if err == nil && o.check && changed {
		return diag.NotReady("`fleetctl lock` writes it; review what has changed", "fleet.lock is out of date")
	}
	return err
}
