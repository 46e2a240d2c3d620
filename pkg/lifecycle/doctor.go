package lifecycle

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/checkup"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// DoctorReport has the results of all preflight checks.
type DoctorReport struct {
	FormatVersion string            `json:"formatVersion"`
	Checks        preflight.Reports `json:"checks"`
	Failed        int               `json:"failed"`
	Warned        int               `json:"warned"`
}

// Doctor runs init's preflight checks alone. It changes only one thing: it makes Flux's deploy key, because the user has to give the public
// half to the remote. With opts.NoCommands it runs no command that the fleet repo names.
func Doctor(ctx context.Context, deps management.Deps, opts session.Options) (*DoctorReport, error) {
	if err := checkup.CheckNames(opts.SkipPreflight); err != nil {
		return nil, err
	}
	ctx, cancel := steps.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	s, err := session.Read(ctx, deps, opts)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := s.ReachHost(ctx); err != nil {
		s.HostErr = err // a check reports this, beside the other checks
	}
	checks := preflight.Run(ctx, checkup.ForDoctor(s)...)
	checkup.Excuse(checks, opts.SkipPreflight)
	return &DoctorReport{
		FormatVersion: "1", Checks: checks,
		Failed: checks.Count(preflight.StatusFail), Warned: checks.Count(preflight.StatusWarn),
	}, nil
}
