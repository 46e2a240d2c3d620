package lifecycle

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/pivot"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

const (
	stepSnapshots = "keep snapshots"
	// snapshotEvery is how often it is looked whether a snapshot is due. Any kind of any provider may have changed: to watch them all would be
	// a connection for each, to list them takes a tenth of a second.
	snapshotEvery = 20 * time.Second
)

// keepSnapshots keeps a snapshot of the bootstrap cluster whenever something has changed, from when Flux begins until the clusters are
// there: a runner that dies in between takes the only other record of what exists in a cloud with it. That the first cannot be kept is an
// error; later ones are tried again.
func (b *bootstrap) keepSnapshots(
	ctx context.Context, client *kube.Client, p *following.Pushed, clusters steps.Awaited[clustersThere], detail func(string),
) error {
	place, err := b.session.Place()
	if err != nil {
		return err
	}
	last := ""
	keep := func(ctx context.Context) error {
		snap, _, err := pivot.TakeSnapshot(ctx, client, b.session.Claim())
		if err != nil {
			return err
		}
		hash := sha256.New()
		for _, o := range snap.Objects {
			hash.Write(o.Object)
		}
		if now := string(hash.Sum(nil)); now != last {
			keys, err := pivot.SealingKeys(p)
			if err != nil {
				return err
			}
			if err := snapshot.Put(ctx, place, snap, keys); err != nil {
				return err
			}
			last = now
			detail(snap.ID + " holds " + plain.Count(len(snap.Objects), "object"))
		}
		return nil
	}
	if err := keep(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(snapshotEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := keep(ctx); err != nil && ctx.Err() == nil {
				b.session.Deps.Report.Warn(fmt.Sprintf("no snapshot was kept in %s: %v", place, err))
			}
		case <-clusters.Made():
			return keep(ctx)
		case <-ctx.Done(): // also a run that fails has made something
			return session.Late(ctx, keep)
		}
	}
}

// fromSnapshot finds out what a management cluster that does not run here has left behind: a restore to go on with, a snapshot to begin
// from, or a reason to make none. It never takes a living one for gone: the caller says so (--source-is-gone).
func (b *bootstrap) fromSnapshot(ctx context.Context) error {
	if b.session.HostErr != nil || b.session.Connected {
		return nil //nolint:nilerr // preflight tells it with all else
	}
	place, ids, err := b.session.Snapshots(ctx)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return standing.RefuseAnother(ctx, b.session)
	}
	st, err := b.session.Host.State(ctx)
	if err == nil && st == host.StateStopped {
		st, err = b.session.Host.Start(ctx, nil)
	}
	if err != nil || st == host.StateForeign {
		return err // init says the rest
	}
	id := ""
	if st == host.StateRunning {
		var ours bool
		if id, ours, err = b.restoring(ctx, place, ids); err != nil || ours {
			return err
		}
	}
	r := pivot.NewRestoration(b.init)
	if r.Snap, err = pivot.FindSnapshot(ctx, b.session, place, id); err != nil {
		return err
	}
	r.AcceptDeletions = true // nobody is there to ask, and the lost run would have had them deleted, too
	if err := r.Check(ctx, b.opts.SourceIsGone); err != nil {
		return err
	}
	b.session.Deps.Report.Warn(fmt.Sprintf("going on from the snapshot %s of %s, taken %s: what was made after it is not in it", r.Snap.ID,
		b.session.Mgmt.Name, plain.Ago(r.Snap.Taken)))
	b.restore, b.init.GoesOn = r, true
	return nil
}

// restoring is the snapshot that an earlier run began to restore here. ours says that there is nothing to restore: the cluster has done
// work, or taken it over, or one of the snapshots is its own. One that is neither was made by a run that was cut off before it began to
// restore.
func (b *bootstrap) restoring(ctx context.Context, place snapshot.Place, ids []string) (id string, ours bool, err error) {
	client, err := management.Reach(ctx, b.session.Host)
	if err != nil {
		return "", false, err
	}
	journal, err := handover.ReadJournal(ctx, client)
	switch {
	case err != nil:
		return "", false, err
	case journal == nil:
		ours, err = standing.SnapshotsAreOf(ctx, b.session, place, ids, client)
		return "", ours, err
	case journal.Phase == handover.PhaseReleased || journal.Snapshot == "":
		return "", true, nil
	}
	return journal.Snapshot, false, nil
}
