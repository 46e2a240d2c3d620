package lifecycle

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
)

// The kinds of places beside folders, as --to, --from and spec.snapshots.to name them.
const (
	placeRegistry = "oci://"
	placeBranch   = "branch:"
)

// elsewhere tells whether a place is no folder.
func elsewhere(where string) bool {
	return strings.Contains(where, "://") || strings.HasPrefix(where, placeBranch)
}

// gitRemote is the fleet repo's remote, as snapshots in a branch of it need it.
type gitRemote struct {
	url  string
	auth func() (gitrepo.Auth, error)
	// followed is the branch with the fleet itself.
	followed string
}

// openPlace is where the snapshots of a management cluster are kept: a folder, a repository of a registry, or a branch of the fleet repo.
func openPlace(where, cluster string, git gitRemote) (snapshot.Place, error) {
	if where == "" {
		return nil, diag.Usage("give a folder that outlives the management cluster, oci://REGISTRY/PATH or branch:NAME; or declare one in fleet.yaml: spec.snapshots.to",
			"nothing says where the snapshots of %s are kept", cluster)
	}
	if repository, is := strings.CutPrefix(where, placeRegistry); is {
		shelf, err := bundle.NewShelf(repository)
		if err != nil {
			return nil, err
		}
		return snapshot.OnShelf(shelf, cluster)
	}
	if branch, is := strings.CutPrefix(where, placeBranch); is {
		return branchPlace(branch, cluster, git)
	}
	if scheme, _, is := strings.Cut(where, "://"); is {
		return nil, diag.Usage("give a folder, oci://REGISTRY/PATH, or branch:NAME for a branch of the fleet repo", "snapshots cannot be kept in a place of the kind %s://", scheme)
	}
	return snapshot.NewFolder(where, cluster)
}

func branchPlace(branch, cluster string, git gitRemote) (snapshot.Place, error) {
	if git.url == "" {
		return nil, diag.Usage("give the fleet repo a remote (spec.git.url), or name a folder", "a branch of the fleet repo keeps no snapshot of %s: the repo has no remote, and goes with this machine", cluster)
	}
	if branch == git.followed {
		return nil, diag.Usage("name another branch, as branch:fleetctl-snapshots", "the branch %s has the fleet itself", branch)
	}
	auth, err := git.auth()
	if err != nil {
		return nil, err
	}
	shelf, err := gitrepo.NewShelf(git.url, branch, auth)
	if err != nil {
		return nil, err
	}
	return snapshot.OnShelf(shelf, cluster)
}

// gitRemote is the remote of the session's fleet.
func (s *session) gitRemote() gitRemote {
	return gitRemote{
		url: s.fleet.Spec.Git.URL, followed: s.fleet.Spec.Git.Branch, auth: func() (gitrepo.Auth, error) { return s.pushAuth(), nil },
	}
}

// openPlace is the place that was given or, where none was, the one of fleet.yaml. A standby's is that of the one which it takes over from.
func (s *session) openPlace(given string) (snapshot.Place, error) {
	return openPlace(cmp.Or(given, s.snapshotsTo()), s.declaredAs(), s.gitRemote())
}

// place is where fleet.yaml says that the session's snapshots are kept.
func (s *session) place() (snapshot.Place, error) { return s.openPlace("") }

// snapshots are those that there are where fleet.yaml says, oldest first; none where it says nothing.
func (s *session) snapshots(ctx context.Context) (snapshot.Place, []string, error) {
	if s.snapshotsTo() == "" {
		return nil, nil, nil
	}
	place, err := s.place()
	if err != nil {
		return nil, nil, err
	}
	ids, err := place.List(ctx)
	return place, ids, err
}

// keysInUse are those of known that the fleet repo at root is encrypted for now; where it says nothing of them, fallback.
func keysInUse(root string, known, fallback secret.Keys) (secret.Keys, error) {
	rules, err := fleetsecrets.Rules(root)
	if err != nil || rules == nil {
		return fallback, err
	}
	if inUse := known.For(rules.Recipients()); len(inUse) > 0 {
		return inUse, nil
	}
	return fallback, nil
}

// sealingKeys are those of the fleet's keys that a snapshot is encrypted for.
func (p *pushed) sealingKeys() (secret.Keys, error) {
	return keysInUse(p.session.opts.Dir, p.access.keys, p.access.keys)
}

// findSnapshot reads a snapshot of the session's management cluster, the newest where id is empty.
func (s *session) findSnapshot(ctx context.Context, place snapshot.Place, id string) (*snapshot.Snapshot, error) {
	keys, err := fleetsecrets.LocalKeys(s.deps, s.stateFleet(), s.opts.Dir, s.opts.AgeKeyFile)
	if err != nil {
		return nil, err
	}
	var snap *snapshot.Snapshot
	if id == "" {
		snap, err = s.newestButOwnNotes(ctx, place, keys)
	} else {
		snap, err = snapshot.Find(ctx, place, id, keys)
	}
	if err != nil {
		return nil, err
	}
	if err := s.handedOverSince(ctx, place, snap, keys); err != nil {
		return nil, err
	}
	if snap.Fleet != s.identity() || snap.ManagementCluster != s.declaredAs() {
		return nil, diag.Errorf("run it in that fleet's repo, and name the management cluster with --management",
			"the snapshot %s is of management cluster %s of fleet %s (%.8s)", snap.ID, snap.ManagementCluster, snap.FleetName, snap.Fleet)
	}
	return snap, nil
}

// handedOverSince refuses a snapshot that is older than the note that the work was handed over: that one is about all before it.
func (s *session) handedOverSince(ctx context.Context, place snapshot.Place, snap *snapshot.Snapshot, keys secret.Keys) error {
	ids, err := place.List(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if id <= snap.ID {
			continue
		}
		later, err := snapshot.Find(ctx, place, id, keys)
		if err != nil {
			return err
		}
		if later.HandedOver != "" && !s.ownNote(later) {
			return refuseHandedOverSince(s.declaredAs(), later)
		}
	}
	return nil
}

func refuseHandedOverSince(name string, note *snapshot.Snapshot) error {
	never := "remove the snapshot " + note.ID + ", which says so"
	if note.HandedOverUID == "" {
		never = "`fleetctl pivot --abort --source-is-gone --to-kubeconfig FILE`, with its kubeconfig; where it is lost, too, " + never
	}
	return diag.Errorf("ask that one: `fleetctl connect` learns it from its kubeconfig. If it has never taken over, and never will: "+never,
		"%s has handed its work over to %s, or was about to, %s: what it managed before must not be restored", name, note.HandedOver, ago(note.Taken))
}

// ago is a time as people say it.
func ago(t time.Time) string {
	return plain.Duration(time.Since(t)) + " ago"
}
