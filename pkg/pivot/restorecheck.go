package pivot

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// Check refuses a restore that would give a cluster of the snapshot a second owner.
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
		if journal != nil && journal.Snapshot == r.Snap.ID { // an earlier run was told that the other one is gone
			if journal.Phase == handover.PhaseAborting { // that ends first, and then it begins anew
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
		if uid == r.Snap.UID { // it is the very cluster
			if err := r.refuseHeld(ctx, client); err != nil {
				return err
			}
			return r.checkOwners(ctx)
		}
		here = "what runs on this machine under that name is another cluster"
	}
	if err := r.checkOwners(ctx); err != nil || sourceIsGone {
		return err
	}
	return diag.Errorf("if it is, say so: --source-is-gone. If it is not, two management clusters would act on the same machines",
		"nothing here tells whether the management cluster %s that the snapshot was taken of (%s, by %s) is gone: %s, and where it ran no "+
			"machine but that one knows",
		r.Snap.ManagementCluster, plain.Ago(r.Snap.Taken), r.Snap.By, here)
}

// wouldRefuse says in a dry run why the restore would be refused. That is no error of a dry run, which lists the snapshots that may be
// restored instead.
func (r *Restoration) wouldRefuse(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	text := "restoring it would be refused: " + err.Error()
	if hint := diag.Hint(err); hint != "" {
		text += " (" + hint + ")"
	}
	r.session.Deps.Report.Warn(text)
	return nil
}

// refuseHeld refuses a snapshot if its management cluster lives and still has clusters of the snapshot.
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
	return diag.Errorf("`fleetctl status` shows them. A snapshot brings back what is lost; nothing has been changed",
		"the management cluster %s is not gone, and still manages what the snapshot %s holds: %s", r.session.Mgmt.Name, r.Snap.ID,
		plain.Names(held, 8))
}

// checkOwners refuses a snapshot with clusters that another management cluster manages now. If the user agrees, it restores these clusters
// as paused instead: nobody acts on them, and `cluster detach` removes them.
func (r *Restoration) checkOwners(ctx context.Context) error {
	others := handover.Elsewhere(ctx, r.Snap.Objects, r.Snap.Fleet, r.Snap.ManagementCluster)
	if len(others) == 0 {
		return nil
	}
	if !r.pauseElsewhere {
		return diag.Errorf("restore a snapshot that was taken since (`fleetctl restore --dry-run` lists them). Where there is none: "+
			"--pause-elsewhere brings these back paused, "+
			"and `fleetctl cluster detach` takes them away afterwards; nothing has been changed",
			"the snapshot %s holds what others manage since, as the clusters themselves say: %s", r.Snap.ID, saysOf(others))
	}
	r.session.Deps.Report.Warn("these come back paused, because others manage them: " + saysOf(others))
	return r.pause(slices.Sorted(maps.Keys(others)))
}

// pause makes the restore bring these Clusters back paused.
func (r *Restoration) pause(clusters []string) (err error) {
	r.paused = clusters
	r.Snap.Objects, err = capi.PausedIn(r.Snap.Objects, func(cluster string) bool { return slices.Contains(clusters, cluster) })
	return err
}

// checkOwnersAgain is checkOwners for a run that continues a restore. A cluster that the first run has paused stays paused, whatever its
// owner answers now. A cluster that got another owner since then may already be here without a pause, so it is refused. After the take-over
// nobody needs the snapshot any more.
func (r *Restoration) checkOwnersAgain(ctx context.Context, journal *handover.Journal) error {
	if journal.Phase.Committed() {
		return nil
	}
	others := handover.Elsewhere(ctx, r.Snap.Objects, r.Snap.Fleet, r.Snap.ManagementCluster)
	maps.DeleteFunc(others, func(cluster, _ string) bool { return slices.Contains(journal.Pause, cluster) })
	if len(others) > 0 {
		return diag.Errorf("undo what has been done so far (`"+journal.Command()+
			" --abort`), and begin again with a snapshot that was taken since, or with --pause-elsewhere",
			"since it began with the snapshot %s, others manage what that holds, as the clusters themselves say: %s", r.Snap.ID, saysOf(others))
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
