package lifecycle

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

// snapshotsTo is the place that fleet.yaml declares.
func (s *session) snapshotsTo() string {
	to := s.fleet.Spec.Snapshots.To
	if to == "" || elsewhere(to) {
		return to
	}
	return s.inRepo(to)
}
