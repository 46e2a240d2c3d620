package converge

import (
	"context"
	"errors"
	"fmt"

	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitserve"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/repoaccess"
	"github.com/fleetctl/fleetctl/pkg/repofiles"
	"github.com/fleetctl/fleetctl/pkg/resolve"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// offerRepo finds out where Flux reads the fleet repo: at its remote or, where it has none, at a server that it starts.
func (r *Run) offerRepo(ctx context.Context, detail func(string)) (*repoaccess.Endpoint, error) {
	git := r.Session.Fleet.Spec.Git
	if git.URL == "" {
		return r.serveRepo(ctx, detail)
	}
	at, err := repoaccess.Remote(r.Session)
	if err != nil {
		return nil, err
	}
	return at, steps.NothingToDo("Flux reads " + git.URL)
}

// serveRepo serves the folder of the fleet repo, read-only, to the pods of the management cluster, from a process that outlives
// this one.
func (r *Run) serveRepo(ctx context.Context, _ func(string)) (*repoaccess.Endpoint, error) {
	s := r.Session
	gateway, err := s.Host.Gateway(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := prepareWorkTree(ctx, s); err != nil {
		return nil, err
	}
	at, started, err := gitserve.Ensure(ctx, gitserve.Spec{
		StateDir: s.Cluster.Path(management.GitServeDir), RepoDir: s.Opts.Dir, Listen: gateway.Listen, Host: gateway.Host,
		Executable: s.Deps.Executable, Args: []string{"git-serve", s.Cluster.Path(management.GitServeDir)},
	})
	if err != nil {
		return nil, err
	}
	endpoint := &repoaccess.Endpoint{
		URL:     gitserve.URL(gateway.Host, at.Port),
		Display: s.Opts.Dir, Local: true,
		Credentials: flux.SourceCredentials{Username: at.Username, Password: at.Password, CA: []byte(at.CA)},
	}
	if !started {
		return endpoint, steps.NothingToDo("it is being served")
	}
	r.Did()
	return endpoint, nil
}

// prepareWorkTree makes the folder a working tree on the fleet's branch, with the remote that fleet.yaml names.
func prepareWorkTree(ctx context.Context, s *session.Session) (*gitrepo.Repo, error) {
	git := s.Fleet.Spec.Git
	repo, err := gitrepo.Open(s.Opts.Dir)
	switch {
	case err == nil && git.URL != "":
		_, err = repo.EnsureRemote(git.URL)
	case err == nil:
	case !errors.Is(err, gitrepo.ErrNotARepository):
	case git.URL == "":
		repo, err = gitrepo.InitLocal(s.Opts.Dir, git.Branch)
	default:
		repo, err = gitrepo.Clone(ctx, git.URL, s.PushAuth(), git.Branch, s.Opts.Dir)
	}
	if err != nil {
		return nil, err
	}
	repo.NoVerify = s.Opts.NoVerify
	return repo, nil
}

// commitAndPush writes and commits what the fleet repo lacks, with fleet.yaml as it stands, and nothing else that may be dirty, and pushes
// it. Where the remote has moved on, the intent is applied again on top of it, never forced.
func (r *Run) commitAndPush(
	ctx context.Context,
	endpoint *repoaccess.Endpoint,
	client *kube.Client,
	m *resolve.Manifests,
	detail func(string),
) (*following.Pushed, error) {
	s := r.Session
	content := &repofiles.Content{Session: s, Endpoint: endpoint, Client: client, Manifests: m}
	repo, err := prepareWorkTree(ctx, s)
	if err != nil {
		return nil, err
	}
	message := fmt.Sprintf("Point the management cluster %s at this repository\n\nWritten by fleetctl init.\n", s.Mgmt.Name)
	if err := repo.Recover(ctx); err != nil {
		return nil, err
	}
	p := &following.Pushed{Session: s, Repo: repo}
	wanted := func(ctx context.Context, root string) ([]gitrepo.Change, error) {
		changes, err := content.Changes(ctx, root)
		if err != nil {
			return nil, err
		}
		id, err := r.identity(ctx, client, root)
		return append(changes, id...), err
	}
	made, nothing, err := CommitTo(ctx, s, endpoint, p, message, wanted, detail)
	if err != nil {
		return nil, err
	}
	p.Access = content.Access() // with the keys that the commit is encrypted with
	if !made {
		return p, nothing
	}
	r.Did()
	return p, nil
}

// identity is the change by which the fleet repo names the cluster of this run. A cluster that waits for the work of another one, or that
// hands its own over, is not named: an abort would leave the name there, and a run that goes on would name a source again that has nothing
// left. Name does it once the work has changed hands.
func (r *Run) identity(ctx context.Context, client *kube.Client, root string) ([]gitrepo.Change, error) {
	if r.Session.StandbyOf != "" || r.GoesOn {
		return nil, nil
	}
	return standing.Identity(ctx, r.Session, client, root, false)
}

// CommitTo makes the commit where Flux reads it, and notes it in p. nothing says in words that there was nothing to commit.
func CommitTo(
	ctx context.Context, s *session.Session, endpoint *repoaccess.Endpoint, p *following.Pushed, message string, wanted wantedChanges,
	detail func(string),
) (made bool, nothing steps.NothingToDo, err error) {
	message = s.Fleet.CommitMessage(message)
	if endpoint.Local {
		p.Revision, made, err = CommitHere(ctx, p.Repo, message, wanted)
		return made, "all is committed", err
	}
	detail("pushing to " + s.Fleet.Spec.Git.URL)
	intent := func(root string) ([]gitrepo.Change, error) { return wanted(ctx, root) }
	synced, err := p.Repo.Sync(ctx, s.PushAuth(), intent, message, gitrepo.Author{})
	if err != nil {
		return false, "", err
	}
	p.Revision = synced.Commit
	return synced.Pushed, "all is pushed", nil
}

// wantedChanges are what a commit is to bring to a fleet repo that has at root what is committed.
type wantedChanges func(ctx context.Context, root string) ([]gitrepo.Change, error)

// CommitHere commits what is wanted to the working tree's branch. It returns the commit that is there then, and whether there was anything
// to commit. If others commit to the branch in the meantime, it begins again from their commit.
func CommitHere(ctx context.Context, repo *gitrepo.Repo, message string, wanted wantedChanges) (commit string, made bool, err error) {
	const most = 20
	branch, err := repo.Branch()
	for try := 1; err == nil; try++ {
		commit, made, err = commitOnce(ctx, repo, message, wanted)
		if try == most || !errors.Is(err, gitrepo.ErrMoved) {
			break
		}
		var now string
		if now, err = repo.Branch(); err == nil {
			err = gitrepo.SameBranch(branch, now)
		}
	}
	return commit, made, err
}

func commitOnce(ctx context.Context, repo *gitrepo.Repo, message string, wanted wantedChanges) (commit string, made bool, err error) {
	base, err := repo.Head()
	if err != nil {
		return "", false, err
	}
	root, remove, err := repo.Copy(ctx)
	if err != nil {
		return "", false, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	changes, err := wanted(ctx, root)
	if err != nil {
		return "", false, err
	}
	return repo.CommitOnto(ctx, base, changes, message, gitrepo.Author{})
}
