package converge

import (
	"context"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/checkup"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/preflight"
)

// preflight is Doctor as a step of init: nothing is created before it passes.
func (r *Run) preflight(ctx context.Context, _ func(string)) error {
	s := r.Session
	if err := checkup.CheckNames(s.Opts.SkipPreflight); err != nil {
		return err
	}
	var failed []error
	reports := preflight.Run(ctx, checkup.ForInit(s, r.GoesOn)...)
	checkup.Excuse(reports, s.Opts.SkipPreflight)
	for _, found := range reports {
		switch found.Status {
		case preflight.StatusWarn:
			s.Deps.Report.Warn(found.Name + ": " + found.Summary + hintBehind(found.Hint))
		case preflight.StatusFail:
			failed = append(failed, diag.Errorf(found.Hint, "%s: %s", found.Name, found.Summary))
		}
	}
	if err := s.CheckKeys(ctx); err != nil {
		failed = append(failed, err)
	}
	switch len(failed) {
	case 0:
		return ctx.Err()
	case 1:
		return failed[0]
	}
	lines := make([]string, 0, len(failed))
	for _, err := range failed {
		lines = append(lines, "\n  "+err.Error()+hintBehind(diag.Hint(err)))
	}
	return diag.Errorf("correct these, then run the same command again; `fleetctl doctor` shows all checks",
		"%s failed:%s", plain.Count(len(failed), "check"), strings.Join(lines, ""))
}

func hintBehind(hint string) string {
	if hint == "" {
		return ""
	}
	return " (" + hint + ")"
}
