package cmd

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// errAbortDryRun is that of pivot and restore.
var errAbortDryRun = diag.Usage("leave one of them out", "--abort changes something, and --dry-run does not")

func newBackupCmd(f *factory) *cobra.Command {
	var o lifecycle.BackupOptions
	c := &cobra.Command{
		Use:   "backup",
		Short: "Keep what a management cluster manages in an encrypted snapshot that outlives it",
		Long: `Take a snapshot of what a management cluster manages: every Cluster with its machines, its provider's objects, its Secrets, and what Flux and Helm
know of it, all with their status. The snapshot is encrypted with the fleet's age key and kept in a folder that outlives the cluster. The
newest 10 of a management cluster are kept there. Nothing on the cluster is changed.

fleetctl restore gives a snapshot to a new management cluster.`,
		Example: `  fleetctl backup --to /mnt/snapshots
  fleetctl backup              # where spec.snapshots.to in fleet.yaml says`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runBackup(c, f, o) },
	}
	f.addManagement(c)
	f.addReach(c)
	addPlaceFlag(c, &o.To, "to")
	c.Flags().StringVar(&o.AgeKeyFile, "age-key-file", "", "file with the fleet's private age key (default: SOPS_AGE_KEY_FILE, SOPS_AGE_KEY, the state folder's, or the management cluster's)")
	return c
}

func addPlaceFlag(c *cobra.Command, place *string, name string) {
	c.Flags().StringVar(place, name, "", "folder with the snapshots (default: spec.snapshots.to in fleet.yaml)")
}

func runBackup(c *cobra.Command, f *factory, o lifecycle.BackupOptions) (err error) {
	if o.Dir, err = f.repoDir(); err != nil {
		return err
	}
	if o.Target, err = f.declaredTarget(); err != nil {
		return err
	}
	if o.To, err = absolute(o.To); err != nil {
		return err
	}
	deps, err := f.deps()
	if err != nil {
		return err
	}
	result, err := lifecycle.Backup(c.Context(), deps, o)
	if err != nil {
		return err
	}
	f.closeReporter()
	return f.show(views.Backup(result))
}

// absolute is a folder that was given on the command line; "" where none was.
func absolute(dir string) (string, error) {
	if dir == "" || strings.Contains(dir, "://") { // the workflow says what places there are
		return dir, nil
	}
	abs, err := filepath.Abs(dir)
	return abs, diag.Wrap("find the folder "+dir, err, "")
}

func newRestoreCmd(f *factory) *cobra.Command {
	o := &initOptions{}
	var r lifecycle.RestoreOptions
	c := &cobra.Command{
		Use:   "restore",
		Short: "Give what a snapshot holds to a new management cluster",
		Long: `Make the management cluster that fleet.yaml declares, as init does, and give it what a snapshot holds before its Flux begins. The objects are made while
nobody there can act on them, with their status, and are compared with the snapshot; then the management cluster takes over in one write. The
providers find their machines again, and nothing is made a second time.

The management cluster that the snapshot was taken of must be gone: say so with --source-is-gone, for nothing in a snapshot tells. What was
made after the snapshot was taken is not in it: look in the cloud for machines that no Cluster owns.

It can be interrupted at any moment, and the same command goes on. Until the work is taken over --abort undoes it.

Exit codes: 0 the snapshot is restored; 3 something was not ready in time, run it again.`,
		Example: `  fleetctl restore --dry-run
  fleetctl restore --source-is-gone
  fleetctl restore --from /mnt/snapshots --snapshot 20261001T120000Z-abcdef --source-is-gone
  fleetctl restore --abort`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runRestore(c, f, o, r) },
	}
	f.addManagement(c)
	o.addRunFlags(c)
	addPlaceFlag(c, &r.From, "from")
	fs := c.Flags()
	fs.DurationVar(&o.Timeout, "timeout", 0, "give up after this time (default: each step has its own bound)")
	fs.StringVar(&r.Snapshot, "snapshot", "", "ID of the snapshot (default: the newest)")
	fs.BoolVar(&r.SourceIsGone, "source-is-gone", false, "the management cluster that the snapshot was taken of does not act any more")
	fs.BoolVar(&r.DryRun, "dry-run", false, "say what the snapshot holds, and which others there are; change nothing")
	fs.BoolVar(&r.Abort, "abort", false, "undo a restore that has not taken over yet")
	return c
}

func runRestore(c *cobra.Command, f *factory, o *initOptions, r lifecycle.RestoreOptions) (err error) {
	if r.Abort && r.DryRun {
		return errAbortDryRun
	}
	if err := o.complete(f); err != nil {
		return err
	}
	if r.From, err = absolute(r.From); err != nil {
		return err
	}
	deps, err := f.deps()
	if err != nil {
		return err
	}
	r.InitOptions = o.InitOptions
	result, err := lifecycle.Restore(c.Context(), deps, r)
	if err != nil {
		return err
	}
	f.closeReporter()
	return f.show(views.Restore(result))
}
