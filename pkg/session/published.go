package session

import (
	"context"
	"io/fs"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Published returns the files of the fleet repo as the branch of its remote has them: the clone on this machine may be old. It returns the
// files of the folder if the repo has no remote, or if the remote cannot be read, which preflight tells, or must not be asked (see
// ClonedFrom). It changes nothing but the objects that the clone holds.
//
// It asks the remote once for all who look at the repo before a run changes anything, also if the remote does not answer. Whoever commits
// asks again.
func (s *Session) Published(ctx context.Context) (fs.FS, error) {
	return s.published.untilFound(func() (fs.FS, error) {
		if files := s.fetched(ctx); files != nil {
			return files, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return within.FS(s.Opts.Dir)
	})
}

// fetched returns the files of the remote's branch, or nil.
func (s *Session) fetched(ctx context.Context) fs.FS {
	if s.Fleet.Spec.Git.URL == "" || s.ClonedFrom() != "" {
		return nil
	}
	repo, err := gitrepo.Open(s.Opts.Dir)
	if err != nil {
		return nil
	}
	if url, _, err := repo.Remote(); err != nil || url == "" {
		return nil
	}
	revision, err := repo.FetchBranch(ctx, s.PushAuth())
	if err != nil || revision == "" {
		return nil
	}
	files, err := repo.Files(revision)
	if err != nil {
		return nil
	}
	return files
}

// ClonedFrom returns the server that the fleet repo was cloned from, if fleet.yaml names another server and a token would go there.
// Otherwise it returns "". With Options.NoCommands the fleet repo may be a stranger's, and the token in the environment another fleet's.
func (s *Session) ClonedFrom() string {
	if !s.Opts.NoCommands || s.Fleet.Spec.Git.Scheme() == v1alpha1.GitSSH || s.Opts.Git.Token == "" && !s.GivenOwnToken() {
		return ""
	}
	repo, err := gitrepo.Open(s.Opts.Dir)
	if err != nil {
		return ""
	}
	url, _, err := repo.Remote()
	if err != nil || url == "" {
		return ""
	}
	from, err := v1alpha1.Git{URL: url}.ParseURL()
	if err != nil {
		return "" // a folder of this machine
	}
	named, err := s.Fleet.Spec.Git.ParseURL()
	if err != nil || strings.EqualFold(from.Hostname(), named.Hostname()) {
		return ""
	}
	return from.Hostname()
}
