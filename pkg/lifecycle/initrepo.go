package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitserve"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/steps"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// gitEndpoint is the fleet repo as Flux reaches it.
type gitEndpoint struct {
	// url that Flux reads.
	url string
	// display is what a person knows it by.
	display string
	// local says that this machine serves it: there is no remote.
	local       bool
	credentials flux.SourceCredentials
}

// andPush is what a commit needs to reach Flux.
func (e *gitEndpoint) andPush() string {
	if e.local {
		return ""
	}
	return " and push"
}

// offerRepo finds out where Flux reads the fleet repo: at its remote or, where it has none, at a server that it starts.
func (s *session) offerRepo(ctx context.Context, detail func(string)) error {
	git := s.fleet.Spec.Git
	if git.URL == "" {
		return s.serveRepo(ctx, detail)
	}
	credentials, err := s.sourceCredentials()
	if err != nil {
		return err
	}
	s.endpoint = &gitEndpoint{url: sourceURL(git), display: git.URL, credentials: credentials}
	return steps.NothingToDo("Flux reads " + git.URL)
}

// serveRepo serves the folder of the fleet repo, read-only, to the pods of the management cluster, from a process that outlives
// this one.
func (s *session) serveRepo(ctx context.Context, _ func(string)) error {
	gateway, err := s.host.Gateway(ctx)
	if err != nil {
		return err
	}
	if err := s.prepareWorkTree(ctx); err != nil {
		return err
	}
	at, started, err := gitserve.Ensure(ctx, gitserve.Spec{
		StateDir: s.cluster.Path(management.GitServeDir), RepoDir: s.opts.Dir, Listen: gateway.Listen, Host: gateway.Host,
		Executable: s.Executable, Args: []string{"git-serve", s.cluster.Path(management.GitServeDir)},
	})
	if err != nil {
		return err
	}
	s.endpoint = &gitEndpoint{
		url:     gitserve.URL(gateway.Host, at.Port),
		display: s.opts.Dir, local: true,
		credentials: flux.SourceCredentials{Username: at.Username, Password: at.Password, CA: []byte(at.CA)},
	}
	s.serves.Store(true)
	if !started {
		return steps.NothingToDo("it is being served")
	}
	s.did()
	return nil
}

// prepareWorkTree makes the folder a working tree on the fleet's branch, with the remote that fleet.yaml names.
func (s *session) prepareWorkTree(ctx context.Context) (err error) {
	git := s.fleet.Spec.Git
	defer func() {
		if s.repo != nil {
			s.repo.NoVerify = s.opts.NoVerify
		}
	}()
	if s.repo, err = gitrepo.Open(s.opts.Dir); err == nil {
		if git.URL == "" {
			return nil
		}
		_, err = s.repo.EnsureRemote(git.URL)
		return err
	}
	if !errors.Is(err, gitrepo.ErrNotARepository) {
		return err
	}
	if git.URL == "" {
		s.repo, err = gitrepo.InitLocal(s.opts.Dir, git.Branch)
		return err
	}
	s.repo, err = gitrepo.Clone(ctx, git.URL, s.pushAuth(), git.Branch, s.opts.Dir)
	return err
}

// commitAndPush writes and commits what the fleet repo lacks, with fleet.yaml as it stands, and nothing else that may be dirty, and pushes it. Where the remote has moved on, the
// intent is applied again on top of it, never forced.
func (s *session) commitAndPush(ctx context.Context, detail func(string)) error {
	if err := s.prepareWorkTree(ctx); err != nil {
		return err
	}
	message := fmt.Sprintf("Point the management cluster %s at this repository\n\nWritten by fleetctl init.\n", s.mgmt.Name)
	if err := s.repo.Recover(ctx); err != nil {
		return err
	}
	if s.endpoint.local {
		made, err := s.commitHere(ctx, message, s.gitChanges)
		if err != nil {
			return err
		}
		if !made {
			return steps.NothingToDo("all is committed")
		}
		s.did()
		return nil
	}
	detail("pushing to " + s.fleet.Spec.Git.URL)
	intent := func(root string) ([]gitrepo.Change, error) { return s.gitChanges(ctx, root) }
	synced, err := s.repo.Sync(ctx, s.pushAuth(), intent, message, gitrepo.Author{})
	if err != nil {
		return err
	}
	s.revision = synced.Commit
	if !synced.Pushed {
		return steps.NothingToDo("all is pushed")
	}
	s.did()
	return nil
}

// commitHere commits what is wanted to the working tree's branch, and says whether there was anything to commit.
func (s *session) commitHere(
	ctx context.Context, message string, wanted func(ctx context.Context, root string) ([]gitrepo.Change, error),
) (made bool, err error) {
	base, err := s.repo.Head()
	if err != nil {
		return false, err
	}
	root, remove, err := s.repo.Copy(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	changes, err := wanted(ctx, root)
	if err != nil {
		return false, err
	}
	s.revision, made, err = s.repo.CommitOnto(ctx, base, changes, message, gitrepo.Author{})
	return made, err
}

// gitChanges are repoFiles as gitrepo commits them, where root has what is committed, with what is encrypted.
func (s *session) gitChanges(ctx context.Context, root string) ([]gitrepo.Change, error) {
	changes, err := s.changesOf(ctx, root, s.repoFiles)
	if err != nil {
		return nil, err
	}
	encrypted, err := s.secretFiles(ctx, root)
	return append(changes, encrypted...), err
}

// wantedFiles are files that a fleet repo at root is to have; present tells what is there already.
type wantedFiles func(ctx context.Context, root string, present func(manifest.File) bool) ([]manifest.File, error)

// changesOf are files and the fleet's identity as gitrepo commits them. A person's own file in no commit stays as it is; one that is just what would
// be written is left from an earlier run.
func (s *session) changesOf(ctx context.Context, root string, wanted wantedFiles) ([]gitrepo.Change, error) {
	files, err := wanted(ctx, root, func(f manifest.File) bool {
		if _, err := os.Lstat(filepath.Join(root, filepath.FromSlash(f.Path))); err == nil {
			return true
		}
		content, err := within.ReadFile(s.opts.Dir, f.Path, fleetrepo.MaxFile)
		if err != nil {
			return !errors.Is(err, fs.ErrNotExist)
		}
		return !bytes.Equal(content, f.Content)
	})
	if err != nil {
		return nil, err
	}
	changes := make([]gitrepo.Change, 0, len(files))
	for _, f := range files {
		// The cluster is made from fleet.yaml as it stands on disk.
		changes = append(changes, gitrepo.Change{Path: f.Path, Content: f.Content, Replace: f.Path == v1alpha1.FileName})
	}
	identity, err := s.identityFile(root)
	return append(changes, identity...), err
}

// inRepo makes a path that is relative to fleet.yaml absolute.
func (s *session) inRepo(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.opts.Dir, path)
}
