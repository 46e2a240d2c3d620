// Package lifecycle makes, checks and removes a management cluster: Init, Bootstrap, Doctor and Teardown. Each is a readable slice of named
// steps (pkg/steps), and converges when it runs again.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/repofiles"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// Init makes the management cluster that opts and fleet.yaml describe. It returns when Flux has applied the pushed revision, and everything
// that Flux applied is healthy. Init converges: after a failure or a kill, another run does only what is missing. If the host or the server
// of the fleet repo ends meanwhile, Init starts it again, a few times.
func Init(ctx context.Context, deps management.Deps, opts session.Options) (*InitResult, error) {
	ctx, cancel := steps.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	changed := false
	for again := 1; ; again++ {
		r, err := initOnce(ctx, deps, opts)
		gone, is := errors.AsType[*goneError](err)
		if is && again <= revivals && ctx.Err() == nil {
			deps.Report.Warn(fmt.Sprintf("%s has ended while init worked: starting it again (%d of %d)", gone.what, again, revivals))
			changed = true
			continue
		}
		if r != nil {
			r.Changed = r.Changed || changed
		}
		return r, err
	}
}

// initOnce runs the steps once.
func initOnce(ctx context.Context, deps management.Deps, opts session.Options) (*InitResult, error) {
	s, err := session.Open(ctx, deps, opts)
	if err != nil {
		return nil, steps.TimedOut(ctx, err)
	}
	defer s.Close()
	return runInit(ctx, s)
}

func runInit(ctx context.Context, s *session.Session) (*InitResult, error) {
	if s.Stranger != nil {
		return nil, s.Stranger
	}
	if err := standing.MustStand(ctx, s); err != nil {
		return nil, err
	}
	unlock, err := s.Cluster.Lock("fleetctl init")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := makeRepository(ctx, s); err != nil {
		return nil, err
	}
	if err := standing.Refuse(ctx, s); err != nil {
		return nil, err
	}
	if err := checkAuthor(ctx, s); err != nil {
		return nil, err
	}
	r := converge.NewRun(s)
	if s.StandbyOf != "" {
		r.Held = r.RestsAsDeclared
	}
	if err := runWatched(ctx, r); err != nil {
		return nil, err
	}
	return result(r), nil
}

// checkAuthor looks whether git has an author for commits. Init commits minutes later, and a missing author should not fail it then.
func checkAuthor(ctx context.Context, s *session.Session) error {
	err := gitrepo.CheckAuthor(ctx, s.Opts.Dir)
	if ctx.Err() != nil { // earlier questions took all the time, and git has refused nothing
		return diag.Wrap("commit the fleet repo", steps.TimedOut(ctx, err),
			"give a longer --timeout; `fleetctl doctor` shows what does not answer")
	}
	return diag.Wrap("commit the fleet repo", err, diag.Hint(err))
}

// result describes a successful run of the steps.
func result(r *converge.Run) *InitResult {
	s := r.Session
	endpoint, _ := r.Endpoint.Peek()
	pushed, _ := r.Pushed.Peek()
	kept, _ := r.Kept.Peek()
	installed, _ := r.Installed.Peek()
	ofFlux, _ := r.Flux.Peek()
	result := &InitResult{
		FormatVersion: "1", Fleet: s.Fleet.Metadata.Name, Cluster: s.Mgmt.Name, Host: string(s.Mgmt.Host.Type),
		Repo: s.Opts.Dir, GitURL: endpoint.Display, Branch: s.Fleet.Spec.Git.Branch, Revision: pushed.Revision,
		Kubeconfig: s.Cluster.Path(management.KubeconfigFile), DeployKey: strings.TrimSpace(string(endpoint.Credentials.IdentityPub)),
		Changed: r.Changed.Load(), Kept: kept,
		Upgraded: slices.Concat(installed.Upgraded, ofFlux), Renewed: installed.Renewed, Snapshot: installed.Snapshot,
	}
	if s.StandbyOf != "" {
		result.Next = converge.StandbyNext(s)
		return result
	}
	result.Next = []string{
		"fleetctl status                            # what runs, and what is wrong",
		"export KUBECONFIG=" + diag.ShellWord(result.Kubeconfig),
		repofiles.FirstCluster(s, endpoint.Local),
	}
	if _, err := os.Stat(filepath.Join(s.Opts.Dir, ".github", "workflows")); err != nil &&
		s.Fleet.Spec.Git.ForgeType() == v1alpha1.ForgeGitHub {
		result.Next = append(result.Next,
			"fleetctl ci add --pr                       # checks on each pull request; takes a token that may write workflows")
	}
	return result
}

// Upgrade brings an existing management cluster to the versions of fleet.yaml. It is Init, but makes neither a fleet nor a management
// cluster.
func Upgrade(ctx context.Context, deps management.Deps, opts session.Options) (*InitResult, error) {
	opts.UpgradeOnly = true
	return Init(ctx, deps, opts)
}

// InitResult is what Init did, for people and scripts.
type InitResult struct {
	FormatVersion string `json:"formatVersion"`
	Fleet         string `json:"fleet"`
	Cluster       string `json:"cluster"`
	Host          string `json:"host"`
	Repo          string `json:"repo"`
	GitURL        string `json:"gitURL"`
	Branch        string `json:"branch"`
	Revision      string `json:"revision"`
	Kubeconfig    string `json:"kubeconfig"`
	DeployKey     string `json:"deployKey,omitempty"`
	Changed       bool   `json:"changed"`
	// Kept are the objects that Flux applied before the take-over and that the fleet repo does not have.
	Kept []string `json:"kept,omitempty"`
	// Upgraded are the components that run in another version than before. Snapshot is a private file with the Cluster API objects from
	// before the upgrade.
	Upgraded []converge.Upgraded `json:"upgraded,omitempty"`
	Snapshot string              `json:"snapshot,omitempty"`
	// Renewed are the providers whose variables had changed.
	Renewed []converge.Renewed `json:"renewed,omitempty"`
	Steps   []progress.Event   `json:"steps"`
	Next    []string           `json:"next"`
}
