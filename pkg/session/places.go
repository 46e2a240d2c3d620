package session

import (
	"cmp"
	"context"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
)

// The kinds of places beside folders, as --to, --from and spec.snapshots.to name them.
const (
	placeRegistry = "oci://"
	placeBranch   = "branch:"
)

// Elsewhere tells whether a place is not a folder.
func Elsewhere(where string) bool {
	return strings.Contains(where, "://") || strings.HasPrefix(where, placeBranch)
}

// GitRemote is the fleet repo's remote, for snapshots in one of its branches.
type GitRemote struct {
	URL  string
	Auth func() (gitrepo.Auth, error)
	// Followed is the branch that has the fleet itself.
	Followed string
}

// OpenPlace opens the place that keeps the snapshots of a management cluster: a folder, a repository of a registry, or a branch of the
// fleet repo.
func OpenPlace(where, cluster string, git GitRemote) (snapshot.Place, error) {
	if where == "" {
		return nil, diag.Usage(
			"give a folder that outlives the management cluster, oci://REGISTRY/PATH or branch:NAME; or declare one in fleet.yaml: "+
				"spec.snapshots.to",
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
		return nil, diag.Usage("give a folder, oci://REGISTRY/PATH, or branch:NAME for a branch of the fleet repo",
			"snapshots cannot be kept in a place of the kind %s://", scheme)
	}
	return snapshot.NewFolder(where, cluster)
}

func branchPlace(branch, cluster string, git GitRemote) (snapshot.Place, error) {
	if git.URL == "" {
		return nil, diag.Usage("give the fleet repo a remote (spec.git.url), or name a folder",
			"a branch of the fleet repo keeps no snapshot of %s: the repo has no remote, and goes with this machine", cluster)
	}
	if branch == git.Followed {
		return nil, diag.Usage("name another branch, as branch:fleetctl-snapshots", "the branch %s has the fleet itself", branch)
	}
	auth, err := git.Auth()
	if err != nil {
		return nil, err
	}
	shelf, err := gitrepo.NewShelf(git.URL, branch, auth)
	if err != nil {
		return nil, err
	}
	return snapshot.OnShelf(shelf, cluster)
}

// gitRemote is the remote of the session's fleet.
func (s *Session) gitRemote() GitRemote {
	return GitRemote{
		URL: s.Fleet.Spec.Git.URL, Followed: s.Fleet.Spec.Git.Branch, Auth: func() (gitrepo.Auth, error) { return s.PushAuth(), nil },
	}
}

// OpenPlace opens the given place, or else the place that fleet.yaml declares. A standby uses the place of the management cluster that it
// takes over from.
func (s *Session) OpenPlace(given string) (snapshot.Place, error) {
	return OpenPlace(cmp.Or(given, s.SnapshotsTo()), s.DeclaredAs(), s.gitRemote())
}

// Place returns the place that fleet.yaml declares for the session's snapshots.
func (s *Session) Place() (snapshot.Place, error) { return s.OpenPlace("") }

// Snapshots returns the IDs of the snapshots in the place that fleet.yaml declares, oldest first. It returns none if fleet.yaml declares no
// place. If the place does not answer, the error says what the snapshots would have told.
func (s *Session) Snapshots(ctx context.Context) (snapshot.Place, []string, error) {
	if s.SnapshotsTo() == "" {
		return nil, nil, nil
	}
	place, err := s.Place()
	if err != nil {
		return nil, nil, err
	}
	ids, err := place.List(ctx)
	if err != nil {
		hint := "make the place reachable and run the same command again, because only its snapshots may tell whether another machine has made " +
			s.DeclaredAs() + "; if they are elsewhere, name that place: spec.snapshots.to in fleet.yaml"
		if why := diag.Hint(err); why != "" {
			hint = why + "; " + hint
		}
		err = diag.Wrap("find out whether there are snapshots of "+s.DeclaredAs(), err, hint)
	}
	return place, ids, err
}

// SnapshotsTo is the place that fleet.yaml declares.
func (s *Session) SnapshotsTo() string {
	to := s.Fleet.Spec.Snapshots.To
	if to == "" || Elsewhere(to) {
		return to
	}
	return s.inRepo(to)
}
