package pivot

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// BackupOptions are the options of Backup.
type BackupOptions struct {
	Target *management.Target
	// Client of the management cluster, if the caller has one already.
	Client *kube.Client
	// Dir is the folder of the fleet repo. It is empty if the command does not run in a fleet repo.
	Dir string
	// To is the place for the snapshot. Default: the place that fleet.yaml declares.
	To string
	// Git reaches the remote of the fleet repo, for snapshots in a branch of it.
	Git change.Credentials
	// AgeKeyFile has the fleet's age key. If it is empty, Backup uses the key that this machine knows, or else the key of the management
	// cluster.
	AgeKeyFile string
}

// BackupResult is the snapshot that was taken.
type BackupResult struct {
	FormatVersion string         `json:"formatVersion"`
	Cluster       string         `json:"cluster"`
	Snapshot      string         `json:"snapshot"`
	Place         string         `json:"place"`
	Taken         time.Time      `json:"taken"`
	Clusters      []string       `json:"clusters"`
	Counts        map[string]int `json:"counts"`
	Missing       []string       `json:"missing"`
	// Next are commands that go on from here, ready to be pasted into a shell.
	Next []string `json:"next"`
}

// Backup takes a snapshot of everything that a management cluster manages, encrypts it for the fleet's age keys, and keeps it in a place
// that outlives the cluster.
func Backup(ctx context.Context, deps management.Deps, o BackupOptions) (*BackupResult, error) {
	place, err := o.place()
	if err != nil {
		return nil, err
	}
	client := o.Client
	if client == nil {
		if client, err = o.Target.Client(ctx); err != nil {
			return nil, err
		}
	}
	claim, err := ownership.ReadClaim(ctx, client)
	if err != nil {
		return nil, err
	}
	if claim == nil {
		return nil, diag.Errorf("run `fleetctl init` first",
			"the cluster %s belongs to no fleet, so it has nothing to back up", o.Target.Name)
	}
	keys, known, err := backupKeys(ctx, deps, o, claim, client)
	if err != nil {
		return nil, err
	}
	made := aboutNewFolder(place, o.Target.Name)
	step := deps.Report.Start("take a snapshot of " + o.Target.Name)
	snap, missing, err := keepOne(ctx, place, keys, known, client, claim, step.Detail)
	if err != nil {
		step.Fail(err)
		return nil, err
	}
	step.Done()
	if made != "" {
		deps.Report.Warn(made)
	}
	return &BackupResult{
		FormatVersion: "1", Cluster: o.Target.Name, Snapshot: snap.ID, Place: place.String(), Taken: snap.Taken, Clusters: snap.Clusters,
		Counts: snap.Counts, Missing: missing, Next: []string{showCommand(o.To, snap.ID) + "    # shows the content"},
	}, nil
}

// aboutNewFolder says that a snapshot is the first one in its folder; "" if it is not, or for another place. A mount point
// whose volume is not mounted looks like a new folder, and the snapshot would not outlive this machine.
func aboutNewFolder(place snapshot.Place, cluster string) string {
	if folder, is := place.(interface{ IsNew() bool }); !is || !folder.IsNew() {
		return ""
	}
	return fmt.Sprintf("%s had no folder for %s before, so it was made: if a volume should be mounted there, mount it, and run the same "+
		"command again", place, cluster)
}

// showCommand is the command that shows what a snapshot has. from is the value of its flag --from, or "" for the place of fleet.yaml.
func showCommand(from, id string) string {
	words := []string{"fleetctl", "restore"}
	if from != "" {
		words = append(words, "--from", from)
	}
	return diag.ShellCommand(append(words, "--snapshot", id, "--dry-run")...)
}

// keepOne takes a snapshot, and keeps it as the newest of the place. known are the keys that decrypt earlier snapshots of the fleet.
func keepOne(
	ctx context.Context, place snapshot.Place, keys, known secret.Keys, client *kube.Client, claim *ownership.Claim, detail func(string),
) (*snapshot.Snapshot, []string, error) {
	turn, err := snapshot.Begin(ctx, place, time.Now())
	if err != nil {
		return nil, nil, err
	}
	turn.Known = known
	if err := turn.RefuseOthers(ctx, claim.Fleet, keys); err != nil {
		return nil, nil, err
	}
	snap, missing, err := TakeSnapshot(ctx, client, claim)
	if err != nil {
		return nil, nil, err
	}
	detail("encrypting it")
	return snap, missing, turn.Put(ctx, snap, keys)
}

// place returns the place that the options name, or else the place that the fleet repo in o.Dir declares.
func (o BackupOptions) place() (snapshot.Place, error) {
	repo, err := fleetrepo.Open(o.Dir)
	if err != nil { // o.Dir is in no fleet repo, or in one that cannot be read: OpenPlace says what is missing
		return session.OpenPlace(o.To, o.Target.Name, session.GitRemote{})
	}
	where := cmp.Or(o.To, repo.Fleet.Spec.Snapshots.To)
	if o.To == "" && where != "" && !session.Elsewhere(where) && !filepath.IsAbs(where) {
		where = filepath.Join(repo.Dir, where)
	}
	git := repo.Fleet.Spec.Git
	return session.OpenPlace(where, o.Target.Name, session.GitRemote{
		URL: git.URL, Followed: git.Branch, Auth: func() (gitrepo.Auth, error) { return change.AuthFor(repo, o.Git) },
	})
}

// backupKeys returns the keys that the fleet repo is encrypted for now. It returns no older key, which may have leaked, and no key of
// another fleet. Without a fleet repo, it returns the keys with which the management cluster decrypts its secrets. known are all keys of
// the fleet that this machine and the management cluster have.
func backupKeys(
	ctx context.Context, d management.Deps, o BackupOptions, claim *ownership.Claim, client *kube.Client,
) (keys, known secret.Keys, err error) {
	top, err := fleetrepo.Find(o.Dir)
	if err != nil {
		top = o.Dir // o.Dir is in no fleet repo
	}
	local, err := fleetsecrets.LocalKeys(d, state.Fleet{ID: claim.Fleet, Name: claim.Name}, top, o.AgeKeyFile)
	if err != nil {
		return nil, nil, err
	}
	there, err := fleetsecrets.ClusterKeys(ctx, client)
	if err != nil {
		return nil, nil, err
	}
	if len(there) == 0 {
		there = local
	}
	known = fleetsecrets.Unique(slices.Concat(there, local))
	keys, err = keysInUse(top, known, there)
	if err == nil && len(keys) == 0 {
		err = diag.Errorf("give --age-key-file, or let `fleetctl init` make an age key", "the fleet has no age key to encrypt the snapshot for")
	}
	return keys, known, err
}

// TakeSnapshot reads everything that a management cluster manages. Its ID is found when it is kept: see snapshot.Turn. TakeSnapshot also
// returns the names of the objects that a restore could not bring back.
func TakeSnapshot(ctx context.Context, client *kube.Client, claim *ownership.Claim) (*snapshot.Snapshot, []string, error) {
	journal, err := handover.ReadJournal(ctx, client)
	if err != nil {
		return nil, nil, err
	}
	if err := snapshotable(claim.Cluster, journal); err != nil {
		return nil, nil, err
	}
	manager, err := capi.New(client)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now().UTC().Truncate(time.Second)
	snap := &snapshot.Snapshot{
		Taken: now, By: ownership.Somebody(), Fleet: claim.Fleet, FleetName: claim.Name,
		ManagementCluster: claim.Cluster,
		Providers:         []string{},
	}
	var graph *capi.Graph
	group, readCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { graph, err = manager.Graph(readCtx, capi.GraphOptions{WithFlux: true}); return err })
	group.Go(func() (err error) { snap.UID, err = handover.ClusterUID(readCtx, client); return err })
	group.Go(func() error {
		installed, err := manager.Installed(readCtx)
		for _, p := range installed {
			snap.Providers = append(snap.Providers, p.Provider.String())
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, nil, diag.Wrap("read the objects that "+claim.Cluster+" manages", err, "")
	}
	slices.Sort(snap.Providers)
	snap.Counts, snap.Clusters, snap.Available, snap.Epoch = graph.Counts(), graph.Clusters(), graph.Available(), graph.Epoch()
	snap.Objects, err = graph.Portable()
	return snap, graph.Missing, err
}

// snapshotable refuses a management cluster in the middle of a hand-over, because its objects are split between two clusters.
func snapshotable(cluster string, j *handover.Journal) error {
	return handover.Restorable(cluster, j)
}

// ForgetSnapshots removes the snapshots of a management cluster that has handed all its work over and is gone. A later management cluster
// of the same name begins from the fleet repo. uid identifies the management cluster (handover.ClusterUID). ForgetSnapshots keeps and
// counts the snapshots of other clusters, and the snapshots that no key of this machine decrypts.
func ForgetSnapshots(ctx context.Context, deps management.Deps, o session.Options, uid string) (kept int, err error) {
	s, err := session.Read(ctx, deps, o)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	place, ids, err := s.Snapshots(ctx)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	keys, err := fleetsecrets.LocalKeys(s.Deps, s.StateFleet(), s.Opts.Dir, s.Opts.AgeKeyFile)
	if err != nil {
		return 0, err
	}
	for _, id := range ids {
		if snap, err := snapshot.Find(ctx, place, id, keys); err != nil || snap.Fleet != s.Identity() || snap.UID != uid {
			kept++
			continue
		}
		if err := place.Remove(ctx, id); err != nil {
			return kept, fmt.Errorf("remove the snapshot %s of %s: %w", id, s.Mgmt.Name, err)
		}
	}
	return kept, nil
}
