package pivot

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/resolve"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/state"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

const (
	stepHalted   = "install providers without starting them"
	stepRehearse = "restore the snapshot behind a fence"
)

// DrillOptions are the options of Drill and RefreshStandby.
type DrillOptions struct {
	session.Options
	// From and Snapshot: see RestoreOptions.
	From, Snapshot string
	// MaxAge is how old the snapshot may be. 0 means any age.
	MaxAge time.Duration
}

// DrillResult says whether a restore would work today.
type DrillResult struct {
	FormatVersion string `json:"formatVersion"`
	Cluster       string `json:"cluster"`
	// Standby is the standby that tried the restore. It is empty if the drill made a host.
	Standby string `json:"standby,omitempty"`
	Place   string `json:"place"`
	// Works says that the drill found nothing that would make a restore fail.
	Works bool `json:"works"`
	// Snapshot is nil if it cannot be opened.
	Snapshot *SnapshotInfo `json:"snapshot"`
	// Restored counts the objects that equal those in the snapshot after the restore, by kind. It is empty if the drill did not get that far.
	Restored map[string]int `json:"restored"`
	// Seconds from the start of the drill to the compared objects.
	Seconds  int            `json:"seconds"`
	Findings []DrillFinding `json:"findings"`
	// Elsewhere lists the values and credentials that a restore needs beside Git and the snapshot.
	Elsewhere []string `json:"elsewhere"`
}

// DrillFinding is something that would make a restore fail, or a warning for the user.
type DrillFinding struct {
	Severity diag.Severity `json:"severity"`
	Summary  string        `json:"summary"`
	Hint     string        `json:"hint,omitempty"`
}

// drill is a restore into a host that the drill makes and deletes.
type drill struct {
	session *session.Session // of the snapshot's management cluster
	opts    DrillOptions
	snap    *snapshot.Snapshot
	result  *DrillResult

	values placeholders
}

// Drill restores a snapshot into an embedded host that it makes for this, stops before any controller there could act on the objects, and
// deletes the host. It changes neither the management cluster, nor a cloud, nor Git. Findings are not an error.
func Drill(ctx context.Context, deps management.Deps, o DrillOptions) (*DrillResult, error) {
	ctx, cancel := steps.WithTimeout(ctx, o.Timeout)
	defer cancel()
	s, err := session.Read(ctx, deps, o.Options)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if s.NewFleet {
		return nil, diag.Errorf("run it in a clone of the fleet repo", "there is no fleet in %s", s.Opts.Dir)
	}
	place, err := s.OpenPlace(o.From)
	if err != nil {
		return nil, err
	}
	d := &drill{session: s, opts: o}
	d.result = &DrillResult{
		FormatVersion: "1", Cluster: s.Mgmt.Name, Place: place.String(), Restored: map[string]int{},
		Findings: []DrillFinding{}, Elsewhere: []string{},
	}
	if opened, err := d.open(ctx, place); err != nil || !opened {
		return d.result, err
	}
	if err := d.read(ctx); err != nil {
		return nil, err
	}
	if err := d.rehearse(ctx); err != nil {
		return nil, err
	}
	d.result.Elsewhere = append(d.result.Elsewhere, d.values.names()...)
	d.result.Works = !slices.ContainsFunc(d.result.Findings, func(f DrillFinding) bool { return f.Severity == diag.SeverityError })
	return d.result, nil
}

// open reads the snapshot. A snapshot that is there and cannot be opened is a finding: opened is false then, and the drill ends.
func (d *drill) open(ctx context.Context, place snapshot.Place) (opened bool, err error) {
	d.snap, err = FindSnapshot(ctx, d.session, place, d.opts.Snapshot)
	if snapshot.IsUnreadable(err) {
		d.find(diag.SeverityError, err.Error(), diag.Hint(err))
		return false, nil
	}
	if err != nil {
		return false, err
	}
	d.result.Snapshot = infoOf(d.snap)
	return true, nil
}

func (d *drill) find(severity diag.Severity, summary, hint string) {
	d.result.Findings = append(d.result.Findings, DrillFinding{Severity: severity, Summary: summary, Hint: hint})
}

// rehearse makes the host, restores into it, and deletes it, also if the restore fails.
func (d *drill) rehearse(ctx context.Context) error {
	s, err := d.elsewhere(ctx)
	if err != nil {
		return err
	}
	unlock, err := s.Cluster.Lock("fleetctl drill")
	if err != nil {
		return err
	}
	defer unlock()
	if err := removeHost(ctx, s); err != nil { // the host of a drill that was killed
		return err
	}
	began := time.Now()
	failed := d.run(ctx, s)
	d.result.Seconds = int(time.Since(began).Seconds())
	step := s.Deps.Report.Start("delete the drill's host")
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute) // delete the host after an interrupt too
	defer cancel()
	if err := removeHost(cleanup, s); err != nil {
		step.Fail(err)
		return err
	}
	step.Done()
	return failed
}

// elsewhere returns a session for the management cluster of the drill. It is as fleet.yaml declares it, but on an embedded host, with a
// state folder that no other command reads, and with placeholders instead of credentials.
func (d *drill) elsewhere(ctx context.Context) (*session.Session, error) {
	deps := d.session.Deps
	deps.Store = state.Store{Dir: filepath.Join(deps.Store.Dir, "drills")}
	d.values.real = deps.LookupEnv
	deps.LookupEnv = d.values.lookup
	o := d.opts.Options
	o.Ephemeral, o.MergeKubeconfig = true, ""
	s, err := session.Read(ctx, deps, o)
	if err != nil {
		return nil, err
	}
	mgmt := *s.Mgmt
	mgmt.Host, mgmt.Parent = v1alpha1.Host{Type: v1alpha1.HostEmbedded}, ""
	mgmt.Providers = withPlaceholders(mgmt.Providers)
	s.Mgmt, s.Connected, s.Stranger = &mgmt, false, nil
	s.FindHost(ctx)
	return s, s.HostErr
}

// run takes the steps of init up to Flux's controllers, and then restores up to the take-over.
func (d *drill) run(ctx context.Context, s *session.Session) error {
	init := converge.NewRun(s)
	init.GoesOn = true // skips the checks of existing snapshots and of who has the work: the drill deletes its host again
	wanted := []string{converge.StepVersions, converge.StepHost, converge.StepManifests, converge.StepAPI, converge.StepFlux}
	var kept []steps.Step
	for _, step := range init.Steps() {
		if slices.Contains(wanted, step.Name) {
			step.Needs = slices.DeleteFunc(slices.Clone(step.Needs), func(need string) bool { return !slices.Contains(wanted, need) })
			kept = append(kept, step)
		}
	}
	kept = append(kept, steps.Step{
		Name: stepHalted, Needs: []string{converge.StepAPI, converge.StepManifests},
		Work:    steps.Do3(installHalted, init.Client, init.Manifests, steps.Later(init.Pods)),
		Timeout: 15 * time.Minute,
	}, steps.Step{
		Name: stepRehearse, Needs: []string{stepHalted, converge.StepFlux}, Work: steps.Do2(d.takeIn, init.Client, init.Manifests),
		Timeout: 30 * time.Minute,
	})
	err := steps.Run(ctx, s.Deps.Report, kept)
	if err == nil || ctx.Err() != nil || diag.IsOfDisk(err) { // a full disk of this machine is no finding about the snapshot
		return err
	}
	// A step that fails here would fail in a real restore too.
	d.find(diag.SeverityError, err.Error(), diag.Hint(err))
	return nil
}

// installHalted installs the providers with no Pods.
func installHalted(
	ctx context.Context,
	client *kube.Client,
	m *resolve.Manifests,
	pods steps.Awaited[converge.PodsRun],
	detail func(string),
) error {
	manager, err := capi.New(client)
	if err != nil {
		return err
	}
	_, err = manager.Install(ctx, m.Source, capi.InstallOptions{
		Providers: m.Providers, Detail: detail,
		PodsRun: converge.UntilPodsRun(pods), Halted: true,
	})
	return err
}

// takeIn gives the drill's management cluster the objects of the snapshot. No controller acts on them.
func (d *drill) takeIn(ctx context.Context, client *kube.Client, m *resolve.Manifests, detail func(string)) error {
	o := restoreOptions(d.snap, handover.Side{Name: "the drill", Client: client},
		func(progress handover.Progress) { detail(progress.String()) })
	o.Check = d.tries(following.View{Flux: m.Flux})
	report, err := handover.Rehearse(ctx, o)
	d.noteWarnings(report)
	if err == nil {
		d.result.Restored = report.Moved
	}
	return err
}

// removeHost deletes the drill's host and its state.
func removeHost(ctx context.Context, s *session.Session) error {
	st, err := s.Host.State(ctx)
	if err != nil {
		return err
	}
	if st != host.StateAbsent {
		if _, err := s.Host.Delete(ctx); err != nil {
			return diag.Wrap("delete the drill's host", err, "run the same command again")
		}
	}
	return s.Cluster.Remove()
}
