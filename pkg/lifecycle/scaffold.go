package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/repoaccess"
	"github.com/fleetctl/fleetctl/pkg/repofiles"
	"github.com/fleetctl/fleetctl/pkg/resolve"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// ScaffoldResult is what Scaffold did.
type ScaffoldResult struct {
	FormatVersion string `json:"formatVersion"`
	Fleet         string `json:"fleet"`
	Cluster       string `json:"cluster"`
	Repo          string `json:"repo"`
	// Branch has the commit. Commit is empty if there was nothing to write.
	Branch string `json:"branch"`
	Commit string `json:"commit"`
	// Files that were written, by their paths in the repo.
	Files   []string `json:"files"`
	Changed bool     `json:"changed"`
	// KeyFile has the private key of the fleet's secrets, if this run has written the rules of encryption.
	KeyFile string   `json:"keyFile,omitempty"`
	Next    []string `json:"next"`
}

// Scaffold writes the fleet repo that Init would write, and commits it to the checked out branch. It needs neither a cluster nor a
// download, so it leaves out Flux's manifests, fleet.lock, and, without a bundle, the versions that fleet.yaml leaves open. Init adds them
// later. Scaffold pushes nothing, so that the commit can become a pull request. Existing files stay. The age key of the fleet is kept in
// the state folder. Scaffold asks the remote only if opts.GitURL names one and the folder is empty: it then clones an existing fleet repo.
// Errors: flags that contradict fleet.yaml, an unknown provider, a provider that the bundle lacks, no author for the commit.
func Scaffold(ctx context.Context, deps management.Deps, opts session.Options) (*ScaffoldResult, error) {
	if err := defaultBranch(&opts); err != nil {
		return nil, err
	}
	s, err := session.Read(ctx, deps, opts)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if s.Stranger != nil {
		return nil, s.Stranger
	}
	if err := s.RefuseStandby(); err != nil {
		return nil, err
	}
	for _, p := range components.DeclaredProviders(s.Mgmt.Providers) {
		if err := releases.CheckKnown(p); err != nil { //nolint:contextcheck // it reads what this program has in it
			return nil, err
		}
	}
	if err := gitrepo.CheckAuthor(ctx, s.Opts.Dir); err != nil {
		return nil, diag.Wrap("commit the fleet repo", err, diag.Hint(err))
	}
	if s.Bundle != nil {
		if s.FleetFile, err = resolve.FromBundle(ctx, s); err != nil {
			return nil, err
		}
	}
	return scaffoldFleet(ctx, s)
}

// defaultBranch sets the branch of a new fleet to the default branch of the clone's remote, if nobody names another branch. The checked out
// branch may be the branch of a pull request.
func defaultBranch(opts *session.Options) error {
	if opts.Branch != "" || opts.GitURL != "" {
		return nil
	}
	if _, err := os.Lstat(filepath.Join(opts.Dir, v1alpha1.FileName)); err == nil {
		return nil
	}
	repo, err := gitrepo.Open(opts.Dir)
	if errors.Is(err, gitrepo.ErrNotARepository) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	opts.Branch, err = repo.DefaultBranch()
	return err
}

func scaffoldFleet(ctx context.Context, s *session.Session) (*ScaffoldResult, error) {
	git := s.Fleet.Spec.Git
	content := &repofiles.Content{Session: s, Endpoint: &repoaccess.Endpoint{URL: git.URL, Display: git.URL, Local: git.URL == ""}}
	repo, err := scaffoldWorkTree(s)
	if err != nil {
		return nil, err
	}
	if err := repo.Recover(ctx); err != nil {
		return nil, err
	}
	r := &ScaffoldResult{
		FormatVersion: "1", Fleet: s.Fleet.Metadata.Name, Cluster: s.Mgmt.Name, Repo: s.Opts.Dir, Files: []string{},
		Next: []string{
			repofiles.FirstCluster(s, true),
			"fleetctl validate                # every file, object and reference",
			"fleetctl init                    # make the management cluster that follows this repo",
		},
	}
	if git.URL != "" {
		r.Next = append([]string{"git push                         # and open a pull request, or merge it as it is"}, r.Next...)
	}
	message := s.Fleet.CommitMessage(fmt.Sprintf("Declare the fleet %s\n\nWritten by fleetctl init --scaffold.\n", s.Fleet.Metadata.Name))
	commit, made, err := converge.CommitHere(ctx, repo, message, func(ctx context.Context, root string) ([]gitrepo.Change, error) {
		changes, err := repofiles.ChangesOf(ctx, s, root, content.ScaffoldedFiles)
		if err != nil {
			return nil, err
		}
		rules, err := content.FirstRules(ctx, root)
		if len(rules) > 0 {
			r.KeyFile = s.Deps.Store.KeyFile(s.StateFleet())
		}
		changes = append(changes, rules...)
		for _, c := range changes {
			r.Files = append(r.Files, c.Path)
		}
		return changes, err
	})
	if err != nil {
		return nil, err
	}
	if r.Changed = made; made {
		r.Commit = commit
	} else {
		r.Files, r.KeyFile = []string{}, ""
	}
	r.Branch, err = repo.Branch()
	return r, err
}

// scaffoldWorkTree makes the folder a working tree with the remote that fleet.yaml names. It does not contact the remote.
func scaffoldWorkTree(s *session.Session) (*gitrepo.Repo, error) {
	git := s.Fleet.Spec.Git
	repo, err := gitrepo.InitLocal(s.Opts.Dir, git.Branch)
	if err != nil {
		return nil, err
	}
	repo.NoVerify = s.Opts.NoVerify
	if git.URL != "" {
		_, err = repo.EnsureRemote(git.URL)
	}
	return repo, err
}
