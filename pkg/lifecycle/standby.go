package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

const (
	stepRest  = "put it to rest"
	stepFetch = "have it fetch the fleet repo"
)

// A standby is a management cluster that init makes like the one which it takes over from, of the same part of fleet.yaml, and then puts to rest. In the fleet repo
// both have one folder: the standby has nothing of its own there.

// chosen is the management cluster or the standby of that name, as what it is or would be, and what it is a standby of.
func chosen(fleet *v1alpha1.Fleet, name string) (m *v1alpha1.ManagementCluster, standbyOf string, err error) {
	if standby := fleet.Standby(name); standby != nil {
		m, err = fleet.StandbyCluster(standby)
		return m, standby.Of, err
	}
	m, err = fleet.ManagementCluster(name)
	if name == "" || !errors.Is(err, v1alpha1.ErrNoManagementCluster) || len(fleet.Spec.Standbys) == 0 {
		return m, "", err
	}
	var names []string
	for i := range fleet.Spec.Standbys {
		names = append(names, fleet.Spec.Standbys[i].Name)
	}
	hint := diag.Hint(err) + "; standbys: " + strings.Join(names, ", ")
	if nearest := diag.Nearest(name, names); nearest != "" {
		hint = "did you mean " + nearest + "?"
	}
	return nil, "", &diag.Error{Op: "find management cluster or standby " + name, Err: v1alpha1.ErrNoManagementCluster, Hint: hint, Code: diag.ExitUsage}
}

// refuseStandby is for a command that a management cluster with work is for.
func (s *session) refuseStandby() error {
	if s.standbyOf == "" {
		return nil
	}
	return diag.Usage("name "+s.standbyOf+" with --management; `fleetctl standby activate "+s.mgmt.Name+"` has the standby take over",
		"%s is a standby of %s, and manages nothing", s.mgmt.Name, s.standbyOf)
}

// declaredAs is the management cluster in fleet.yaml that the session's is of: a standby's is the one that it takes over from.
func (s *session) declaredAs() string { return cmp.Or(s.standbyOf, s.mgmt.Name) }

// side is the session's management cluster in a hand-over.
func (s *session) side(client *kube.Client) handover.Side {
	return handover.Side{Name: s.mgmt.Name, Client: client, Standby: s.standbyOf != ""}
}

// standbySteps are init for a standby: all but connecting Flux, and then it is put to rest.
func (r *initRun) standbySteps() []steps.Step {
	return append(upTo(r.initSteps(), stepHost, stepProviders, stepFlux, stepPush), steps.Step{
		Name: stepRest, Needs: []string{stepHost, stepProviders, stepFlux}, Work: steps.Do1(r.rest, r.client), Timeout: 15 * time.Minute,
		Hint: "run the same command again: it goes on",
	}, steps.Step{
		Name: stepFetch, Needs: []string{stepRest, stepPush}, Work: steps.Do2(r.fetch, r.client, r.pushed), Timeout: 5 * time.Minute,
		Hint: "run the same command again",
	})
}

func (s *session) standbyNext() []string {
	return []string{
		fmt.Sprintf("fleetctl standby refresh %s             # tries the last snapshot of %s on it; have it run by a timer", s.mgmt.Name, s.standbyOf),
		fmt.Sprintf("fleetctl status --management %s         # how it is, and how old that snapshot is", s.mgmt.Name),
		fmt.Sprintf("fleetctl standby activate %s            # on the day that %s is lost", s.mgmt.Name, s.standbyOf),
	}
}

// whyHeld says why what is installed is left as it is.
func (r *initRun) whyHeld() string {
	if r.session.standbyOf != "" {
		return "it is at rest, with what fleet.yaml declares"
	}
	return "the restore is under way"
}

// restsAsDeclared tells whether the standby is at rest with the versions that fleet.yaml declares. With others it is brought to those, behind its fence.
func (r *initRun) restsAsDeclared(ctx context.Context, client *kube.Client) (bool, error) {
	journal, err := handover.ReadJournal(ctx, client)
	if err != nil || !journal.IsStandby() {
		return false, err
	}
	m, told := r.manifests.Peek()
	if !told {
		return false, nil
	}
	manager, err := capi.New(client)
	if err != nil {
		return false, err
	}
	installed, err := manager.Installed(ctx)
	if err != nil {
		return false, err
	}
	for _, p := range m.providers {
		if !slices.ContainsFunc(installed, func(have capi.InstalledProvider) bool { return have.Provider.String() == p.String() }) {
			return false, nil
		}
	}
	report, err := flux.NewSystem(client).Status(ctx)
	return err == nil && report.Version == r.session.fleet.Spec.Flux.Version, err
}

// rest puts the standby to rest, or sees that it is.
func (r *initRun) rest(ctx context.Context, client *kube.Client, detail func(string)) error {
	s := r.session
	changed, err := handover.MakeStandby(ctx, handover.StandbyOptions{
		Fleet: s.identity(), Target: handover.Side{Name: s.mgmt.Name, Client: client}, Of: s.standbyOf,
		Progress: func(progress handover.Progress) { detail(progress.String()) },
	})
	if err == nil && !changed {
		return steps.NothingToDo("it is a standby of " + s.standbyOf)
	}
	r.did()
	return err
}

// fetch has the standby fetch the fleet repo: on the day that it is needed, it can.
func (r *initRun) fetch(ctx context.Context, client *kube.Client, p *pushed, detail func(string)) error {
	detail("waiting until it has fetched " + p.access.endpoint.display)
	if err := p.fetch(ctx, client); err != nil {
		return err
	}
	return r.session.confirmClaim(ctx, client)
}

// openStandby opens the session of a standby that is there. journal is its.
func openStandby(ctx context.Context, deps management.Deps, o InitOptions, command string) (
	s *session, client *kube.Client, journal *handover.Journal, done func(), err error,
) {
	if s, done, err = openAlone(ctx, deps, o, command); err != nil {
		return nil, nil, nil, nil, err
	}
	if client, journal, err = s.lookStandby(ctx); err != nil {
		done()
		return nil, nil, nil, nil, err
	}
	return s, client, journal, done, nil
}

func (s *session) lookStandby(ctx context.Context) (*kube.Client, *handover.Journal, error) {
	if s.newFleet {
		return nil, nil, diag.Errorf("run it in a clone of the fleet repo", "there is no fleet in %s", s.opts.Dir)
	}
	if s.standbyOf == "" {
		return nil, nil, diag.Usage("where it was a standby, it has taken over: `fleetctl status --management "+s.mgmt.Name+"`. `fleetctl standby add` declares a new one",
			"%s is no standby: fleet.yaml has it as a management cluster", s.mgmt.Name)
	}
	if s.hostErr != nil {
		return nil, nil, s.hostErr
	}
	there, err := s.findStanding(ctx)
	if err != nil {
		return nil, nil, err
	}
	if there == nil {
		return nil, nil, diag.NotReady("`fleetctl host start --management "+s.mgmt.Name+"` starts one that is stopped, `fleetctl init --management "+s.mgmt.Name+"` makes one. "+
			"Where another machine has made it: `fleetctl connect --management "+s.mgmt.Name+" --kubeconfig FILE`",
			"the standby %s does not run here", s.mgmt.Name)
	}
	if err := s.checkClaim(there.claim); err != nil {
		return nil, nil, err
	}
	journal, err := handover.ReadJournal(ctx, there.client)
	if err == nil && !journal.IsStandby() && (journal == nil || !journal.Activates) {
		err = diag.NotReady("finish it: `fleetctl init --management "+s.mgmt.Name+"`", "%s is not at rest", s.mgmt.Name)
	}
	if err == nil {
		err = s.checkOf(journal)
	}
	if err == nil && (journal.IsStandby() || !journal.Phase.Committed()) {
		s.waiting, err = handover.ClusterUID(ctx, there.client)
	}
	return there.client, journal, err
}

// checkOf refuses a standby whose journal names another management cluster than fleet.yaml does: with that one's snapshots it would take over what it is no standby of.
func (s *session) checkOf(journal *handover.Journal) error {
	if journal.IsStandby() {
		if journal.Standby.Of == s.standbyOf {
			return nil
		}
		return diag.NotReady("pull the fleet repo if it is behind; then `fleetctl init --management "+s.mgmt.Name+"` makes it a standby of "+s.standbyOf,
			"%s is a standby of %s, and not of %s as fleet.yaml says", s.mgmt.Name, journal.Standby.Of, s.standbyOf)
	}
	if journal.Source.Name == s.standbyOf {
		return nil
	}
	return diag.Errorf("pull the fleet repo if it is behind, or have fleet.yaml name "+journal.Source.Name+" again until this is finished or undone",
		"%s takes over from %s, and not from %s as fleet.yaml says", s.mgmt.Name, journal.Source.Name, s.standbyOf)
}

// RefreshStandby tries the last snapshot on a standby: it holds it against Git and what is at hand here, restores it up to where the standby would take over, takes
// the copies away again, and notes there what it has seen. Findings are no error.
func RefreshStandby(ctx context.Context, deps management.Deps, o DrillOptions) (*DrillResult, error) {
	ctx, cancel := steps.WithTimeout(ctx, o.Timeout)
	defer cancel()
	s, client, journal, done, err := openStandby(ctx, deps, o.InitOptions, "fleetctl standby refresh")
	if err != nil {
		return nil, steps.TimedOut(ctx, err)
	}
	defer done()
	if !journal.IsStandby() && !journal.Tried() { // it acts, or will
		return nil, handover.IsUsed(s.mgmt.Name, journal)
	}
	place, err := s.openPlace(o.From)
	if err != nil {
		return nil, err
	}
	d := &drill{session: s, opts: o, result: &DrillResult{
		FormatVersion: "1", Cluster: s.standbyOf, Standby: s.mgmt.Name, Place: place.String(), Restored: map[string]int{}, Findings: []DrillFinding{}, Elsewhere: []string{},
	}}
	if d.snap, err = s.findSnapshot(ctx, place, o.Snapshot); err != nil {
		return nil, err
	}
	if d.snap.HandedOver != "" {
		return nil, refuseHandedOverSince(s.standbyOf, d.snap)
	}
	d.result.Snapshot = infoOf(d.snap)
	if err := d.read(ctx); err != nil {
		return nil, err
	}
	if _, trouble, err := flux.NewSystem(client).Fetched(ctx); err != nil || trouble != "" {
		d.find(diag.SeverityError, "it does not fetch the fleet repo: "+cmp.Or(trouble, fmt.Sprint(err)), "`fleetctl init --management "+s.mgmt.Name+"` gives it the way there")
	}
	if err := d.tryOn(ctx, client); err != nil {
		return nil, err
	}
	return d.result, handover.See(ctx, s.side(client), d.seen())
}

// tryOn restores the snapshot into the standby, and undoes it.
func (d *drill) tryOn(ctx context.Context, client *kube.Client) error {
	step := d.session.deps.Report.Start("try the snapshot on " + d.session.mgmt.Name)
	began := time.Now()
	report, err := handover.Try(ctx, restoreOptions(d.snap, d.session.side(client), func(p handover.Progress) { step.Detail(p.String()) }))
	d.result.Seconds = int(time.Since(began).Seconds())
	d.noteWarnings(report)
	if err != nil && (ctx.Err() != nil || errors.Is(err, handover.ErrOvertaken)) { // that says nothing of the snapshot
		step.Fail(err)
		return err
	}
	if err != nil { // what fails now would fail on the day that it is needed
		step.Fail(err)
		d.find(diag.SeverityError, err.Error(), diag.Hint(err))
	} else {
		step.Done()
		d.result.Restored = report.Moved
	}
	d.result.Works = !slices.ContainsFunc(d.result.Findings, func(f DrillFinding) bool { return f.Severity == diag.SeverityError })
	return nil
}

// seen is what a standby keeps of it.
func (d *drill) seen() *handover.Seen {
	seen := &handover.Seen{
		Snapshot: d.snap.ID, Taken: d.snap.Taken, At: time.Now().UTC().Truncate(time.Second), Works: d.result.Works, Problems: []string{}, Clusters: d.snap.Clusters,
	}
	for _, n := range d.result.Restored {
		seen.Objects += n
	}
	const most = 20 // it is kept in the cluster
	for _, f := range d.result.Findings {
		if f.Severity == diag.SeverityError && len(seen.Problems) < most {
			seen.Problems = append(seen.Problems, f.Summary)
		}
	}
	return seen
}

// restoreOptions are those of a restore of that snapshot.
func restoreOptions(snap *snapshot.Snapshot, target handover.Side, progress func(handover.Progress)) handover.RestoreOptions {
	return handover.RestoreOptions{
		Fleet: snap.Fleet, Target: target, Snapshot: snap.ID, Source: handover.Party{Name: snap.ManagementCluster, UID: snap.UID},
		Objects: snap.Objects, Available: snap.Available, Epoch: snap.Epoch, Progress: progress,
	}
}

// noteWarnings turns what a restore was warned of into findings.
func (d *drill) noteWarnings(report *handover.Report) {
	if report == nil {
		return
	}
	for _, warning := range report.Warnings {
		d.find(diag.SeverityWarning, warning, "")
	}
}
