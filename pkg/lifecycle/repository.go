package lifecycle

import (
	"cmp"
	"context"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/forge"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// makeRepository makes the repository at the fleet repo's remote, if the options ask for that and it does not exist. Errors: a fleet
// without a remote, and those of forge.EnsureRepository.
func makeRepository(ctx context.Context, s *session.Session) error {
	if !s.Opts.CreateRepo {
		return nil
	}
	git := s.Fleet.Spec.Git
	if git.URL == "" {
		return diag.Usage("give its address: --git-url; or leave --create-repo out, and fleetctl serves this folder to Flux",
			"--create-repo makes the repository at the remote, and the fleet repo has no remote")
	}
	remote, err := git.ParseURL()
	if err != nil {
		return err
	}
	step := s.Deps.Report.Start("make the repository")
	made, err := forge.EnsureRepository(ctx, forge.Options{
		Type: cmp.Or(s.Opts.Forge, git.ForgeType()), Remote: remote, Token: s.Opts.Git.Token, CA: s.CA,
	})
	switch {
	case err != nil:
		step.Fail(err)
	case made:
		step.Done()
	default:
		step.Skip("it exists")
	}
	return steps.TimedOut(ctx, err)
}
