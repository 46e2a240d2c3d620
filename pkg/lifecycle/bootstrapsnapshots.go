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
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/pivot"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

const (
	stepSnapshots = "keep snapshots"
	// snapshotEvery is the time between two looks for changes. To watch every kind of every provider would need a
	// connection for each kind. To list all kinds takes a tenth of a second.
	snapshotEvery = 20 * time.Second
)

// keepSnapshots keeps a snapshot of the bootstrap cluster after each change, from the start of Flux until the declared
// clusters are Available. If the runner dies in between, the snapshot is the only record of what exists in a cloud. If
// the first snapshot cannot be kept, keepSnapshots returns an error. Later ones are tried again.
func (b *bootstrap) keepSnapshots(
	ctx context.Context, client *kube.Client, p *following.Pushed, clusters steps.Awaited[clustersThere], detail func(string),
) error {
	place, err := b.session.Place()
	if err != nil {
		return err
	}
	kept := &changes{client: client, claim: b.session.Claim(), known: p.Access.Keys}
	keep := func(ctx context.Context) error {
		keys, err := pivot.SealingKeys(p)
		if err != nil {
			return err
		}
		snap, err := kept.keep(ctx, place, keys)
		if err == nil && snap != nil {
			detail(snap.ID + " holds " + plain.Count(len(snap.Objects), "object"))
		}
		return err
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
		case <-ctx.Done(): // a failed run has made objects, too
			return session.Late(ctx, keep)
		}
	}
}

// changes keeps snapshots of a management cluster, one for each change.
type changes struct {
	client *kube.Client
	claim  *ownership.Claim
	known  secret.Keys // all keys of the fleet
	last   string      // what the last snapshot holds
}

// keep keeps a snapshot, if anything has changed since the last one; nil if not. It reads the cluster twice then: the turn of a snapshot
// begins before its reading, and would ask the place, which may be far away, at every look.
func (c *changes) keep(ctx context.Context, place snapshot.Place, keys secret.Keys) (*snapshot.Snapshot, error) {
	if _, holds, err := c.read(ctx); err != nil || holds == c.last {
		return nil, err
	}
	turn, err := snapshot.Begin(ctx, place, time.Now())
	if err != nil {
		return nil, err
	}
	turn.Known = c.known
	snap, holds, err := c.read(ctx)
	if err != nil {
		return nil, err
	}
	if err := turn.Put(ctx, snap, keys); err != nil {
		return nil, err
	}
	c.last = holds
	return snap, nil
}

// read takes a snapshot, and returns a digest of its objects, too.
func (c *changes) read(ctx context.Context) (*snapshot.Snapshot, string, error) {
	snap, _, err := pivot.TakeSnapshot(ctx, c.client, c.claim)
	if err != nil {
		return nil, "", err
	}
	hash := sha256.New()
	for _, o := range snap.Objects {
		hash.Write(o.Object)
	}
	return snap, string(hash.Sum(nil)), nil
}

// fromSnapshot finds out what remains of a management cluster that does not run here. It prepares the continuation of a
// restore, or a restore from a snapshot, or returns the reason why bootstrap must not make a management cluster. Only
// the caller can say that the former management cluster is gone (--source-is-gone).
func (b *bootstrap) fromSnapshot(ctx context.Context) error {
	if b.session.HostErr != nil || b.session.Connected {
		return nil //nolint:nilerr // preflight reports it with the other problems
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
		return err // the steps of init report the rest
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
	r.AcceptDeletions = true // nobody can be asked, and the lost run would have deleted these objects, too
	if err := r.Check(ctx, b.opts.SourceIsGone); err != nil {
		return err
	}
	b.session.Deps.Report.Warn(fmt.Sprintf("continuing from the snapshot %s of %s, taken %s: it lacks everything that was made later",
		r.Snap.ID, b.session.Mgmt.Name, plain.Ago(r.Snap.Taken)))
	b.restore, b.init.GoesOn = r, true
	return nil
}

// restoring returns the snapshot that an earlier run began to restore here. ours says that there is nothing to restore,
// because the cluster has done work, has taken work over, or one of the snapshots is its own. If neither is returned,
// an earlier run made the cluster and was cut off before it began to restore.
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
