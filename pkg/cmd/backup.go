package cmd

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/pivot"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// errAbortDryRun is the error of pivot and restore if both flags are given.
var errAbortDryRun = diag.Usage("leave one of them out", "--abort changes something, and --dry-run does not")

// backupOptions are the flags of backup.
type backupOptions struct {
	pivot.BackupOptions
	tokenFile string
}

func newBackupCmd(f *factory) *cobra.Command {
	o := &backupOptions{}
	c := &cobra.Command{
		Use:   "backup",
		Short: "Store everything that a management cluster manages in an encrypted snapshot",
		Long: `Take a snapshot of everything that a management cluster manages. It holds every Cluster with its machines, its provider's
objects, its Secrets, and its Flux and Helm objects, all with their status. The snapshot is encrypted with the fleet's age key and kept in a
place that outlives the cluster: a folder, a repository of an OCI registry, or a branch of the fleet repo. This place keeps the newest 10
snapshots of a management cluster. Nothing on the cluster is changed.

fleetctl restore gives a snapshot to a new management cluster.`,
		Example: `  fleetctl backup --to /mnt/snapshots
  fleetctl backup --to oci://registry.example.com/acme/snapshots
  fleetctl backup --to branch:fleetctl-snapshots
  fleetctl backup              # where spec.snapshots.to in fleet.yaml says`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runBackup),
	}
	f.addManagement(c)
	f.addReach(c)
	addPlaceFlag(c, &o.To, "to")
	c.Flags().StringVar(&o.tokenFile, "git-token-file", "",
		"file with the token of an https remote, for a branch of it (default: the environment variable FLEETCTL_GIT_TOKEN)")
	c.Flags().StringVar(&o.Git.SSHKeyFile, "ssh-key-file", "", "private key for an ssh remote, for a branch of it (default: the agent)")
	c.Flags().StringVar(&o.AgeKeyFile, "age-key-file", "",
		"file with the fleet's private age key (default: SOPS_AGE_KEY_FILE, SOPS_AGE_KEY, the state folder's, or the management cluster's)")
	return c
}

func addPlaceFlag(c *cobra.Command, place *string, name string) {
	c.Flags().StringVar(place, name, "",
		"folder, oci://REGISTRY/PATH or branch:NAME with the snapshots (default: spec.snapshots.to in fleet.yaml)")
}

func (o *backupOptions) complete(f *factory, _ ...string) (err error) {
	if o.Git.Token, err = readToken(o.tokenFile); err != nil {
		return err
	}
	if o.Dir, err = f.repoDir(); err != nil {
		return err
	}
	if o.Target, err = f.actedTarget(); err != nil {
		return err
	}
	o.To, err = absolute(o.To)
	return err
}

func runBackup(ctx context.Context, f *factory, o *backupOptions) error {
	deps, err := f.deps()
	if err != nil {
		return err
	}
	result, err := pivot.Backup(ctx, deps, o.BackupOptions)
	if err != nil {
		return err
	}
	f.closeReporter()
	return f.show(views.Backup(result))
}

// absolute makes a folder from the command line absolute. It returns "", a URL and branch:NAME as they are.
func absolute(dir string) (string, error) {
	if dir == "" || strings.Contains(dir, "://") || strings.HasPrefix(dir, "branch:") { // the workflow checks these
		return dir, nil
	}
	abs, err := filepath.Abs(dir)
	return abs, diag.Wrap("find the folder "+dir, err, "")
}

// acceptDeletionsHelp is the help of a flag of restore and standby activate.
const acceptDeletionsHelp = "let Flux delete what it applied before and the fleet repo does not have any more"

// restoreOptions are the flags of restore.
type restoreOptions struct {
	initOptions
	restore pivot.RestoreOptions
}

func newRestoreCmd(f *factory) *cobra.Command {
	o := &restoreOptions{}
	r := &o.restore
	c := &cobra.Command{
		Use:   "restore",
		Short: "Restore a snapshot into a new management cluster",
		Long: `Make the management cluster that fleet.yaml declares, as init does, and restore a snapshot into it before its Flux
starts. The command creates the objects with their status while no controller can act on them, and compares every
object with the snapshot. Then the management cluster takes over in one write. The providers find their machines again
and create no machine a second time.

The management cluster of the snapshot must be gone. A snapshot cannot tell whether it is gone: confirm this with
--source-is-gone. A snapshot does not have the machines that were made later. "fleetctl orphans" lists the machines that
no Cluster owns.

With --fence-only, another tool such as Velero restores the objects, and no snapshot is needed. The first run makes the
management cluster without connecting Flux, and stops the providers and Flux. From then on the API server denies all
writes to the providers' objects, except from the service accounts in --velero-namespace. Now restore with the other
tool, and run the command again. The second run checks the restored objects, repairs owner references and status, and
starts the providers and Flux.

You can interrupt the command at any moment, and the same command goes on. Before the management cluster has taken over,
--abort undoes the restore.

Exit codes: 0 it is restored, or fenced; 3 something was not ready in time, run it again.`,
		Example: `  fleetctl restore --dry-run
  fleetctl restore --source-is-gone
  fleetctl restore --from /mnt/snapshots --snapshot 20261001T120000Z-abcdef --source-is-gone
  fleetctl restore --fence-only --source-is-gone    # then restore with Velero
  fleetctl restore --fence-only                     # checks, repairs and takes over
  fleetctl restore --abort`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runRestore),
	}
	f.addManagement(c)
	o.addRunFlags(c)
	addPlaceFlag(c, &r.From, "from")
	fs := c.Flags()
	fs.DurationVar(&o.Timeout, "timeout", 0, "give up after this time (default: each step has its own bound)")
	fs.StringVar(&r.Snapshot, "snapshot", "", "ID of the snapshot (default: the newest)")
	fs.BoolVar(&r.SourceIsGone, "source-is-gone", false, "the management cluster of the snapshot is gone, and will never act again")
	fs.BoolVar(&r.PauseElsewhere, "pause-elsewhere", false,
		"restore a cluster paused if another management cluster owns it, as its own record or the fleet repo says")
	fs.BoolVar(&r.AcceptDeletions, "accept-deletions", false, acceptDeletionsHelp)
	fs.BoolVar(&r.FenceOnly, "fence-only", false,
		"let another tool, such as Velero, restore the objects: the first run fences, the next run takes over")
	fs.StringVar(&r.Admit, "velero-namespace", "velero", "namespace whose service accounts may write behind the fence, with --fence-only")
	fs.BoolVar(&r.Incomplete, "incomplete", false,
		"with --fence-only, go on although objects are missing that the controllers would make a second time")
	fs.BoolVar(&r.DryRun, "dry-run", false, "show the content of the snapshot, list the others, and change nothing")
	fs.BoolVar(&r.Abort, "abort", false, "undo a restore before the management cluster has taken over")
	return c
}

func (o *restoreOptions) complete(f *factory, _ ...string) (err error) {
	if o.restore.Abort && o.restore.DryRun {
		return errAbortDryRun
	}
	if o.restore.FenceOnly && (o.restore.Snapshot != "" || o.restore.From != "") {
		return diag.Usage("leave --from and --snapshot out", "--fence-only restores no snapshot: another tool makes the objects")
	}
	if o.restore.Incomplete && !o.restore.FenceOnly {
		return diag.Usage("give --fence-only, too", "--incomplete is about what another tool has brought")
	}
	if err := o.initOptions.complete(f); err != nil {
		return err
	}
	o.restore.Options = o.Options
	o.restore.From, err = absolute(o.restore.From)
	return err
}

func runRestore(ctx context.Context, f *factory, o *restoreOptions) error {
	deps, err := f.deps()
	if err != nil {
		return err
	}
	result, err := pivot.Restore(ctx, deps, o.restore)
	if err != nil {
		return err
	}
	f.closeReporter()
	return f.show(views.Restore(result))
}
