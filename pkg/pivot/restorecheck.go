package pivot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/standing"
)

// Check returns an error if the restore would give a cluster of the snapshot a second owner. sourceIsGone is the user's word that the
// management cluster of the snapshot no longer runs.
func (r *Restoration) Check(ctx context.Context, sourceIsGone bool) error {
	if r.Snap.HandedOver != "" {
		return refuseHandedOverSince(r.session.Mgmt.Name, r.Snap)
	}
	if record, err := r.session.Cluster.Load(); err == nil && record.PivotedTo != "" {
		return diag.Errorf("`fleetctl status` shows it", "the management cluster %s was pivoted to %s, which has its work",
			record.Name, record.PivotedTo)
	}
	if r.session.HostErr != nil {
		return r.session.HostErr
	}
	st, err := r.session.Host.State(ctx)
	if err != nil {
		return err
	}
	here := "its host on this machine is " + string(st)
	if st == host.StateRunning {
		client, err := management.Reach(ctx, r.session.Host)
		if err != nil {
			return err
		}
		journal, err := handover.ReadJournal(ctx, client)
		if err != nil {
			return err
		}
		if journal != nil && journal.Snapshot == r.Snap.ID { // the user told an earlier run that the source is gone
			if journal.Phase == handover.PhaseAborting { // this run first finishes the abort, and then begins anew
				return r.checkOwners(ctx)
			}
			return r.checkOwnersAgain(ctx, journal)
		}
		if err := handover.Restorable(r.session.Mgmt.Name, journal); err != nil {
			return err
		}
		uid, err := handover.ClusterUID(ctx, client)
		if err != nil {
			return err
		}
		if uid == r.Snap.UID { // the management cluster of the snapshot
			if err := r.refuseHeld(ctx, client); err != nil {
				return err
			}
			return r.checkOwners(ctx)
		}
		here = "the cluster of that name on this machine is another cluster"
	}
	if err := r.checkOwners(ctx); err != nil {
		return err
	}
	later, err := r.later(ctx)
	if err != nil {
		return err
	}
	if sourceIsGone {
		if later != nil {
			r.session.Deps.Report.Warn(fmt.Sprintf("the fleet repo says that %s was made again since the snapshot (%s): assuming that this one "+
				"is gone, too", r.Snap.ManagementCluster, later))
		}
		return nil
	}
	if later != nil {
		here += fmt.Sprintf(", the fleet repo says that it was made again since the snapshot (%s)", later)
	}
	return diag.Errorf("if it is gone, add --source-is-gone. If it is not gone, two management clusters would act on the same machines",
		"nothing here tells whether the management cluster %s of the snapshot (taken %s, by %s) is gone: %s, and it may have run on another "+
			"machine",
		r.Snap.ManagementCluster, plain.Ago(r.Snap.Taken), r.Snap.By, here)
}

// later returns the cluster that the fleet repo names in place of the snapshot's management cluster: another restore may have made it, and
// it may live. It returns nil if the fleet repo names none, or says that it has ended.
func (r *Restoration) later(ctx context.Context) (*fleetrepo.ManagementID, error) {
	files, err := r.session.Published(ctx)
	if err != nil {
		return nil, err
	}
	made, err := fleetrepo.ReadManagementID(files, r.session.Layout())
	if err != nil || made == nil || made.UID == r.Snap.UID {
		return nil, err
	}
	ended, err := fleetrepo.Ended(files, r.session.Layout(), r.session.Mgmt.Name, made)
	if err != nil || ended {
		return nil, err
	}
	return made, nil
}

// tryIntoWhatIsThere returns an error if the management cluster exists and would refuse objects of the snapshot. Most often it does not
// exist: the restore makes it.
func (r *Restoration) tryIntoWhatIsThere(ctx context.Context) error {
	there, err := standing.ForDryRun(ctx, r.session)
	if err != nil || there == nil {
		return err
	}
	notes, err := handover.LookRestore(ctx, restoreOptions(r.Snap, r.session.Side(there.Client), nil))
	for _, note := range notes {
		r.session.Deps.Report.Warn(note)
	}
	return err
}

// wouldRefuse warns, in a dry run, why the restore would be refused. A dry run does not fail for this, because it also lists the snapshots
// that may be restored instead.
func (r *Restoration) wouldRefuse(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	r.session.Deps.Report.Warn("without --dry-run, this command would refuse to restore this snapshot: " + diag.InLine(err))
	return nil
}

// refuseHeld returns an error if the snapshot's management cluster still runs and still has clusters of the snapshot.
func (r *Restoration) refuseHeld(ctx context.Context, client *kube.Client) error {
	there, err := management.Clusters(ctx, client)
	if err != nil {
		return err
	}
	var held []string
	for _, c := range there {
		if slices.Contains(r.Snap.Clusters, c.FullName()) {
			held = append(held, c.FullName())
		}
	}
	if len(held) == 0 {
		return nil
	}
	return diag.Errorf("`fleetctl status` shows these clusters. A snapshot only brings back lost clusters; nothing has been changed",
		"the management cluster %s is not gone, and still manages clusters of the snapshot %s: %s", r.session.Mgmt.Name, r.Snap.ID,
		plain.Names(held, 8))
}

// checkOwners returns an error if another management cluster manages clusters of the snapshot now. With --pause-elsewhere, it has these
// clusters restored as paused instead, so that no controller acts on them and `cluster detach` can remove them.
func (r *Restoration) checkOwners(ctx context.Context) error {
	others, err := r.otherOwners(ctx, "")
	if err != nil || len(others) == 0 {
		return err
	}
	if !r.pauseElsewhere {
		return diag.Errorf("restore a later snapshot (`fleetctl restore --dry-run` lists them). If there is none: --pause-elsewhere "+
			"restores these clusters paused, and `fleetctl cluster detach` removes them afterwards; nothing has been changed",
			"other management clusters have taken over clusters of the snapshot %s: %s", r.Snap.ID, saysOf(others))
	}
	r.session.Deps.Report.Warn("restoring these clusters paused, because other management clusters manage them: " + saysOf(others))
	return r.pause(slices.Sorted(maps.Keys(others)))
}

// otherOwners is otherOwners of the clusters of the snapshot. It warns of those that could not be asked, and keeps what the others said:
// the restore writes over nothing that was written since. begun is as in heldClusters.
func (r *Restoration) otherOwners(ctx context.Context, begun string) (map[string]string, error) {
	holders, err := otherOwners(ctx, r.session, heldClusters{
		names: r.Snap.Clusters, objects: r.Snap.Objects, fleet: r.Snap.Fleet, managementCluster: r.Snap.ManagementCluster,
		begun: begun,
	})
	if err != nil {
		return nil, err
	}
	if len(holders.Silent) > 0 {
		r.session.Deps.Report.Warn(aboutSilent(holders.Silent))
	}
	r.seen = holders.Seen
	return holders.Others, nil
}

// pause makes the restore create these Clusters paused.
func (r *Restoration) pause(clusters []string) (err error) {
	r.paused = clusters
	r.Snap.Objects, err = capi.PausedIn(r.Snap.Objects, func(cluster string) bool { return slices.Contains(clusters, cluster) })
	return err
}

// checkOwnersAgain is checkOwners for a run that continues a restore. A cluster that the first run has paused stays paused, whatever its
// API server answers now. It returns an error if a cluster has got another owner since then, because the copy of that cluster may already
// exist here without a pause. After the take-over it checks nothing.
func (r *Restoration) checkOwnersAgain(ctx context.Context, journal *handover.Journal) error {
	if journal.Phase.Committed() {
		return nil
	}
	others, err := r.otherOwners(ctx, journal.Target.UID)
	if err != nil {
		return err
	}
	maps.DeleteFunc(others, func(cluster, _ string) bool { return slices.Contains(journal.Pause, cluster) })
	if len(others) > 0 {
		return diag.Errorf("undo the restore (`"+journal.Command()+" --abort`), and begin again with a later snapshot, or with --pause-elsewhere",
			"since this restore began, other management clusters have taken over clusters of the snapshot %s: %s", r.Snap.ID, saysOf(others))
	}
	return r.pause(journal.Pause)
}

func saysOf(others map[string]string) string {
	all := make([]string, 0, len(others))
	for cluster, says := range others {
		all = append(all, cluster+" "+says)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
