package lifecycle

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
)

const (
	stepSnapshots = "keep snapshots"
	// snapshotEvery is how often it is looked whether a snapshot is due. Any kind of any provider may have changed: to watch them all would be a
	// connection for each, to list them takes a tenth of a second.
	snapshotEvery = 20 * time.Second
)

// keepSnapshots keeps a snapshot of the bootstrap cluster whenever something has changed, from when Flux begins until the clusters are there: a runner that
// dies in between takes the only other record of what exists in a cloud with it. That the first cannot be kept is an error; later ones are tried again.
func (b *bootstrap) keepSnapshots(ctx context.Context, detail func(string)) error {
	place, err := openPlace("", b.snapshotsTo(), b.mgmt.Name)
	if err != nil {
		return err
	}
	last := ""
	keep := func(ctx context.Context) error {
		snap, _, err := takeSnapshot(ctx, b.client, b.claim())
		if err != nil {
			return err
		}
		hash := sha256.New()
		for _, o := range snap.Objects {
			hash.Write(o.Object)
		}
		if now := string(hash.Sum(nil)); now != last {
			if err := snapshot.Put(ctx, place, snap, b.keys); err != nil {
				return err
			}
			last = now
			detail(fmt.Sprintf("%s holds %d objects", snap.ID, len(snap.Objects)))
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
				b.Report.Warn(fmt.Sprintf("no snapshot was kept in %s: %v", place, err))
			}
		case <-b.clustersDone:
			return keep(ctx)
		case <-ctx.Done(): // also a run that fails has made something
			return late(ctx, keep)
		}
	}
}

// late does something that the end of a run must not cut off.
func late(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	return do(ctx)
}

// fromSnapshot finds out what a management cluster that does not run here has left behind: a restore to go on with, a snapshot to begin from, or a reason to
// make none. It never takes a living one for gone: the caller says so (--source-is-gone).
func (b *bootstrap) fromSnapshot(ctx context.Context) error {
	to := b.snapshotsTo()
	if to == "" || b.hostErr != nil || b.connected {
		return nil //nolint:nilerr // preflight tells it with all else
	}
	st, err := b.host.State(ctx)
	if err != nil {
		return err
	}
	id := ""
	switch st {
	case host.StateRunning:
		if id, err = b.restoring(ctx); err != nil || id == "" {
			return err
		}
	case host.StateStopped, host.StateForeign:
		return nil // init says the rest
	case host.StateAbsent, host.StateBroken:
	}
	place, err := openPlace("", to, b.mgmt.Name)
	if err != nil {
		return err
	}
	if ids, err := place.List(ctx); err != nil || len(ids) == 0 {
		return err
	}
	r := &restore{session: b.session}
	if r.snap, err = b.findSnapshot(ctx, place, id); err != nil {
		return err
	}
	if err := r.check(ctx, b.opts.SourceIsGone); err != nil {
		return err
	}
	b.Report.Warn(fmt.Sprintf("going on from the snapshot %s of %s, taken %s: what was made after it is not in it", r.snap.ID, b.mgmt.Name, ago(r.snap.Taken)))
	b.restore, b.handsOver = r, true
	return nil
}

// restoring is the snapshot that an earlier run began to restore here; "" where none is under way.
func (b *bootstrap) restoring(ctx context.Context) (string, error) {
	client, err := management.Reach(ctx, b.host)
	if err != nil {
		return "", err
	}
	journal, err := handover.ReadJournal(ctx, client)
	if err != nil || journal == nil || journal.Phase == handover.PhaseReleased {
		return "", err
	}
	return journal.Snapshot, nil
}

// markHandedOver notes in the place of the snapshots that the work is another's: nobody restores it from there beside it.
func (s *session) markHandedOver(ctx context.Context, to string) error {
	if s.snapshotsTo() == "" {
		return nil
	}
	place, err := openPlace("", s.snapshotsTo(), s.mgmt.Name)
	if err != nil {
		return err
	}
	now := time.Now().UTC().Truncate(time.Second)
	return snapshot.Put(ctx, place, &snapshot.Snapshot{
		ID: snapshot.NewID(now), Taken: now, By: ownership.Somebody(), Fleet: s.identity(), FleetName: s.fleet.Metadata.Name, ManagementCluster: s.mgmt.Name,
		Providers: []string{}, Clusters: []string{}, Available: []string{}, HandedOver: to,
	}, s.keys)
}

// refuseForgotten refuses to make a management cluster of which there are snapshots: another machine has it, or had.
func (s *session) refuseForgotten(ctx context.Context) error {
	if s.snapshotsTo() == "" || s.hostErr != nil || s.connected {
		return nil //nolint:nilerr // preflight tells it with all else
	}
	if st, err := s.host.State(ctx); err != nil || st != host.StateAbsent {
		return err
	}
	if record, err := s.cluster.Load(); err == nil && record.PivotedTo == "" {
		return nil // this machine was about to make it
	}
	place, err := openPlace("", s.snapshotsTo(), s.mgmt.Name)
	if err != nil {
		return err
	}
	ids, err := place.List(ctx)
	if err != nil || len(ids) == 0 {
		return err
	}
	return diag.Errorf(strings.Join([]string{
		"if it lives, give this machine the way there: `fleetctl connect`", "if it is gone: `fleetctl restore --source-is-gone`",
		"if nothing of it is left anywhere, remove the snapshots",
	}, "; "), "another machine has the management cluster %s, or had: there are snapshots of it in %s, %s the newest", s.mgmt.Name, place, ids[len(ids)-1])
}
