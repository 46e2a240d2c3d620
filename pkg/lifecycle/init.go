// Package lifecycle is what fleetctl does to a management cluster, from nothing to nothing: Init, Bootstrap, Pivot and Teardown.
// Each is a readable slice of named steps (pkg/steps), which converges when it is run again.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// The names of init's steps, as users, logs and tests see them.
const (
	stepPreflight = "check this machine"
	stepVersions  = "choose versions"
	stepHost      = "create management cluster"
	stepManifests = "read manifests"
	stepAPI       = "reach its API server"
	stepServe     = "serve fleet repo"
	stepProviders = "install providers"
	stepFlux      = "install Flux"
	stepPush      = "commit and push"
	stepConnect   = "connect Flux to the fleet repo"
	stepSynced    = "wait for Flux to apply it"
)

// Init makes the management cluster that opts and fleet.yaml describe and returns when Flux has applied the pushed revision and
// all that it applied is healthy. It converges: run again after any failure or kill, it does only what is missing. Where the host or the
// server of the fleet repo ends while it works, it does that by itself, a few times.
func Init(ctx context.Context, deps management.Deps, opts InitOptions) (*InitResult, error) {
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

// initOnce is one run of the steps, which looks at the world anew.
func initOnce(ctx context.Context, deps management.Deps, opts InitOptions) (*InitResult, error) {
	s, err := openSession(ctx, deps, opts)
	if err != nil {
		return nil, steps.TimedOut(ctx, err)
	}
	defer s.close()
	return s.runInit(ctx)
}

func (s *session) runInit(ctx context.Context) (*InitResult, error) {
	if s.stranger != nil {
		return nil, s.stranger
	}
	if err := s.mustStand(ctx); err != nil {
		return nil, err
	}
	unlock, err := s.cluster.Lock("fleetctl init")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if r, err := s.cluster.Load(); err == nil && r.PivotedTo != "" {
		return nil, diag.Errorf("look at it with `fleetctl status`; `fleetctl host start` serves a fleet repo without a remote to it again; "+
			"once `fleetctl host delete` has ended the old host, `fleetctl connect` lets init and upgrade work with it",
			"the management cluster %s was pivoted to %s: init would make a second one for the same fleet", r.Name, r.PivotedTo)
	}
	if err := s.refuseForgotten(ctx); err != nil {
		return nil, err
	}
	// Minutes later, when there is something to commit, would be late.
	if err := gitrepo.CheckAuthor(ctx, s.opts.Dir); err != nil {
		return nil, diag.Wrap("commit the fleet repo", err, diag.Hint(err))
	}
	if err := s.runWatched(ctx); err != nil {
		return nil, err
	}
	return s.initResult(), nil
}

// initSteps is init, in the order in which a reader would do it by hand. Steps that do not need each other run side by side:
// the providers, Flux and the fleet repo meet at "connect".
func (s *session) initSteps() []steps.Step {
	return []steps.Step{
		{
			Name: stepPreflight, Run: s.preflight,
			Hint: "`fleetctl doctor` shows each check", Timeout: 2 * time.Minute,
		},
		{
			Name: stepVersions, Needs: []string{stepPreflight}, Run: s.chooseVersions,
			Hint: "without a network, give --bundle", Timeout: 5 * time.Minute,
		},
		{
			Name: stepHost, Needs: []string{stepVersions}, Run: s.ensureHost,
			Hint: "run the same command again: it cleans up and starts over", Timeout: 15 * time.Minute,
		},
		{
			Name: stepManifests, Needs: []string{stepVersions}, Run: s.readManifests,
			Hint: "without a network, give --bundle", Timeout: 10 * time.Minute,
		},
		{
			// It answers long before the host is whole, which is when most of what is installed can be applied.
			Name: stepAPI, Needs: []string{stepVersions}, Run: s.awaitAPI, Timeout: 15 * time.Minute,
		},
		{
			Name: stepServe, Needs: []string{stepHost}, Run: s.offerRepo,
			Timeout: time.Minute,
		},
		{
			Name: stepProviders, Needs: []string{stepAPI, stepManifests}, Run: s.installProviders,
			Hint: "`fleetctl status` shows why", Timeout: 40 * time.Minute, // an upgrade takes them one after the other
		},
		{
			Name: stepFlux, Needs: []string{stepAPI, stepManifests}, Run: s.installFlux,
			Hint: "`fleetctl status` shows why", Timeout: 15 * time.Minute,
		},
		{
			Name: stepPush, Needs: []string{stepServe, stepAPI, stepManifests}, Run: s.commitAndPush,
			Timeout: 5 * time.Minute,
		},
		{
			Name: stepConnect, Needs: s.beforeConnect(), Run: s.connect,
			Timeout: 5 * time.Minute,
		},
		{
			Name: stepSynced, Needs: []string{stepConnect, stepProviders}, Run: s.waitSynced,
			Hint: "`fleetctl status` shows what is not healthy", Timeout: 15 * time.Minute,
		},
	}
}

// beforeConnect is what Flux cannot begin without. What an existing fleet repo declares needs the providers' kinds and webhooks: Flux would
// fail, and try again much later. A new one declares no cluster yet, so Flux applies it while the providers start.
func (s *session) beforeConnect() []string {
	if s.newFleet {
		return []string{stepPush, stepFlux}
	}
	return []string{stepPush, stepFlux, stepProviders}
}

func (s *session) initResult() *InitResult {
	r := &InitResult{
		FormatVersion: "1", Fleet: s.fleet.Metadata.Name, Cluster: s.mgmt.Name, Host: string(s.mgmt.Host.Type),
		Repo: s.opts.Dir, GitURL: s.endpoint.display, Branch: s.fleet.Spec.Git.Branch, Revision: s.revision,
		Kubeconfig: s.cluster.Path(management.KubeconfigFile), Changed: s.changed, Kept: s.kept, Upgraded: s.upgraded, Snapshot: s.snapshot,
		Renewed: s.renewed,
	}
	if s.deployKey != nil {
		r.DeployKey = s.deployKey.Public
	}
	clusters := s.mgmt.ClustersDir("<environment>") // fleet.yaml need not declare one
	if declared := s.fleet.Spec.Environments; len(declared) > 0 {
		clusters = s.mgmt.ClustersDir(declared[0].Name)
	}
	r.Next = []string{
		"fleetctl status                            # what runs, and what is wrong",
		fmt.Sprintf("export KUBECONFIG=%s", r.Kubeconfig),
		fmt.Sprintf("declare a cluster in %s/<cluster>/cluster.yaml, commit%s it, and Flux makes it", clusters, s.endpoint.andPush()),
	}
	if _, err := os.Stat(filepath.Join(s.opts.Dir, ".github", "workflows")); err != nil && s.fleet.Spec.Git.ForgeType() == v1alpha1.ForgeGitHub {
		r.Next = append(r.Next, "fleetctl ci add --pr                       # checks on each pull request; takes a token that may write workflows")
	}
	return r
}
