package pivot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// openStandby opens the session of a standby that runs, and returns its client and its journal.
func openStandby(ctx context.Context, deps management.Deps, o session.Options, command string) (
	s *session.Session, client *kube.Client, journal *handover.Journal, done func(), err error,
) {
	if s, done, err = session.OpenAlone(ctx, deps, o, command); err != nil {
		return nil, nil, nil, nil, err
	}
	if client, journal, err = lookStandby(ctx, s); err != nil {
		done()
		return nil, nil, nil, nil, err
	}
	return s, client, journal, done, nil
}

func lookStandby(ctx context.Context, s *session.Session) (*kube.Client, *handover.Journal, error) {
	if s.NewFleet {
		return nil, nil, diag.Errorf("run it in a clone of the fleet repo", "there is no fleet in %s", s.Opts.Dir)
	}
	if s.StandbyOf == "" {
		return nil, nil, diag.Usage("if it was a standby, it has taken over: `fleetctl status --management "+s.Mgmt.Name+
			"`; `fleetctl standby add` declares a new one",
			"%s is no standby: fleet.yaml has it as a management cluster", s.Mgmt.Name)
	}
	if s.HostErr != nil {
		return nil, nil, s.HostErr
	}
	there, err := standing.Find(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	if there == nil {
		return nil, nil, diag.NotReady(
			"if it is stopped: `fleetctl host start --management "+s.Mgmt.Name+"`; if it does not exist: `fleetctl init --management "+s.Mgmt.Name+
				"`; if another machine has made it: `fleetctl connect --management "+s.Mgmt.Name+" --kubeconfig FILE`",
			"the standby %s does not run here", s.Mgmt.Name)
	}
	if err := s.CheckClaim(there.Claim); err != nil {
		return nil, nil, err
	}
	journal, err := handover.ReadJournal(ctx, there.Client)
	if err == nil && !journal.IsStandby() && (journal == nil || !journal.Activates) {
		err = diag.NotReady("finish it: `fleetctl init --management "+s.Mgmt.Name+"`", "%s is not at rest", s.Mgmt.Name)
	}
	if err == nil {
		err = checkOf(s, journal)
	}
	if err == nil && (journal.IsStandby() || !journal.Phase.Committed()) {
		s.Waiting, err = handover.ClusterUID(ctx, there.Client)
	}
	return there.Client, journal, err
}

// tookOverBefore is the result of an activation that ended before: fleet.yaml no longer declares a standby, and the journal says from whom
// it took over. It is nil for any other management cluster. A run that is killed after its last change of the fleet repo has printed no
// result, so the same command prints it.
func tookOverBefore(ctx context.Context, s *session.Session) *ActivateResult {
	if s.NewFleet || s.StandbyOf != "" || s.HostErr != nil {
		return nil
	}
	there, err := standing.Find(ctx, s)
	if err != nil || there == nil || s.CheckClaim(there.Claim) != nil {
		return nil
	}
	journal, err := handover.ReadJournal(ctx, there.Client)
	if err != nil || journal == nil || !journal.Activates || journal.Phase != handover.PhaseReleased {
		return nil
	}
	return &ActivateResult{
		FormatVersion: "1", Outcome: "activated", Cluster: s.Mgmt.Name, Of: journal.Source.Name,
		Kubeconfig: s.Cluster.Path(management.KubeconfigFile), Next: []string{"fleetctl status --management " + s.Mgmt.Name},
	}
}

// checkOf returns an error if the standby's journal names another management cluster than fleet.yaml: the standby would take over from the
// wrong one.
func checkOf(s *session.Session, journal *handover.Journal) error {
	if journal.IsStandby() {
		if journal.Standby.Of == s.StandbyOf {
			return nil
		}
		return diag.NotReady("pull the fleet repo if your clone is behind; "+
			"then `fleetctl init --management "+s.Mgmt.Name+"` makes it a standby of "+
			s.StandbyOf,
			"%s is a standby of %s, and not of %s as fleet.yaml says", s.Mgmt.Name, journal.Standby.Of, s.StandbyOf)
	}
	if journal.Source.Name == s.StandbyOf {
		return nil
	}
	return diag.Errorf("pull the fleet repo if your clone is behind; or let fleet.yaml name "+journal.Source.Name+
		" again until the activation is finished or undone",
		"%s takes over from %s, and not from %s as fleet.yaml says", s.Mgmt.Name, journal.Source.Name, s.StandbyOf)
}

// RefreshStandby tries the last snapshot on a standby. It compares the snapshot with Git and with the credentials on this machine, restores
// it up to the take-over, removes the copies again, and writes the result into the standby's journal. Findings are not an error.
func RefreshStandby(ctx context.Context, deps management.Deps, o DrillOptions) (*DrillResult, error) {
	ctx, cancel := steps.WithTimeout(ctx, o.Timeout)
	defer cancel()
	s, client, journal, done, err := openStandby(ctx, deps, o.Options, "fleetctl standby refresh")
	if err != nil {
		return nil, steps.TimedOut(ctx, err)
	}
	defer done()
	if !journal.IsStandby() && !journal.Tried() { // the standby takes over, or has taken over
		return nil, handover.IsUsed(s.Mgmt.Name, journal)
	}
	place, err := s.OpenPlace(o.From)
	if err != nil {
		return nil, err
	}
	d := &drill{session: s, opts: o, result: &DrillResult{
		FormatVersion: "1", Cluster: s.StandbyOf, Standby: s.Mgmt.Name, Place: place.String(), Restored: map[string]int{},
		Findings: []DrillFinding{}, Elsewhere: []string{},
	}}
	opened, err := d.open(ctx, place)
	if err != nil {
		return d.result, err
	}
	if !opened {
		return d.result, d.seeUnopened(ctx, client)
	}
	if d.snap.HandedOver != "" {
		return nil, refuseHandedOverSince(s.StandbyOf, d.snap)
	}
	if err := d.read(ctx); err != nil {
		return nil, err
	}
	if _, trouble, err := flux.NewSystem(client).Fetched(ctx); err != nil || trouble != "" {
		d.find(diag.SeverityError, "the standby does not fetch the fleet repo: "+cmp.Or(trouble, fmt.Sprint(err)),
			"run `fleetctl init --management "+s.Mgmt.Name+"`, which connects it to the fleet repo")
	}
	if err := d.tryOn(ctx, client); err != nil {
		return nil, err
	}
	return d.result, handover.See(ctx, s.Side(client), d.seen())
}

// tryOn restores the snapshot into the standby, and undoes the restore.
func (d *drill) tryOn(ctx context.Context, client *kube.Client) error {
	step := d.session.Deps.Report.Start("try the snapshot on " + d.session.Mgmt.Name)
	began := time.Now()
	o := restoreOptions(d.snap, d.session.Side(client), func(p handover.Progress) { step.Detail(p.String()) })
	o.Check = d.tries(following.View{})
	report, err := handover.Try(ctx, o)
	d.result.Seconds = int(time.Since(began).Seconds())
	d.noteWarnings(report)
	if err != nil && (ctx.Err() != nil || errors.Is(err, handover.ErrOvertaken)) { // neither is a finding about the snapshot
		step.Fail(err)
		return err
	}
	if err != nil { // the activation would fail in the same way
		step.Fail(err)
		d.find(diag.SeverityError, err.Error(), diag.Hint(err))
	} else {
		step.Done()
		d.result.Restored = report.Moved
	}
	d.result.Works = !slices.ContainsFunc(d.result.Findings, func(f DrillFinding) bool { return f.Severity == diag.SeverityError })
	return nil
}

// seeUnopened writes into the standby's journal that the snapshot could not be opened: otherwise `status` would show that an earlier try
// worked. The snapshot of the earlier try stays the one that the standby knows, because this one counts for nothing once somebody has
// moved it out of the place.
func (d *drill) seeUnopened(ctx context.Context, client *kube.Client) error {
	side := d.session.Side(client)
	side.Standby = true
	if err := handover.AbortTry(ctx, side); err != nil { // an earlier try that was killed
		return err
	}
	journal, err := handover.ReadJournal(ctx, client)
	if err != nil {
		return err
	}
	seen := handover.Seen{Clusters: []string{}}
	if journal.IsStandby() && journal.Standby.Seen != nil {
		seen = *journal.Standby.Seen
	}
	d.judge(&seen)
	return handover.See(ctx, side, &seen)
}

// seen returns the result of the try, as the standby's journal keeps it.
func (d *drill) seen() *handover.Seen {
	seen := &handover.Seen{Snapshot: d.snap.ID, Taken: d.snap.Taken, Clusters: d.snap.Clusters}
	for _, n := range d.result.Restored {
		seen.Objects += n
	}
	d.judge(seen)
	return seen
}

// judge writes the time of the try, its outcome and what is wrong into seen.
func (d *drill) judge(seen *handover.Seen) {
	seen.At, seen.Works, seen.Problems = time.Now().UTC().Truncate(time.Second), d.result.Works, []string{}
	const most = 20 // the result has to fit into the Secret of the journal
	for _, f := range d.result.Findings {
		if f.Severity == diag.SeverityError && len(seen.Problems) < most {
			seen.Problems = append(seen.Problems, f.Summary)
		}
	}
}

// restoreOptions returns the options of a restore of this snapshot.
func restoreOptions(snap *snapshot.Snapshot, target handover.Side, progress func(handover.Progress)) handover.RestoreOptions {
	return handover.RestoreOptions{
		Fleet: snap.Fleet, Target: target, Snapshot: snap.ID, Source: handover.Party{Name: snap.ManagementCluster, UID: snap.UID},
		Objects: snap.Objects, Available: snap.Available, Epoch: snap.Epoch, Progress: progress,
	}
}

// tries returns a check that rehearses the Flux of the standby as a restore does, and turns each warning into a finding.
func (d *drill) tries(have following.View) func(context.Context, *kube.Client) error {
	return func(ctx context.Context, at *kube.Client) error {
		return following.Rehearse(ctx, d.session, at, have, following.Rehearsal{
			Name: d.session.DeclaredAs(), Deleted: deletedHint, Warn: func(says string) { d.find(diag.SeverityWarning, says, "") },
		})
	}
}

// noteWarnings turns the warnings of a restore into findings.
func (d *drill) noteWarnings(report *handover.Report) {
	if report == nil {
		return
	}
	for _, warning := range report.Warnings {
		d.find(diag.SeverityWarning, warning, "")
	}
}
