package pivot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/resolve"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

const stepRestore = "restore the snapshot"

// RestoreOptions are the options of Restore.
type RestoreOptions struct {
	session.Options
	// From is the place of the snapshots; by default, the place that fleet.yaml declares. Snapshot is the ID of a snapshot there; by default,
	// the newest one.
	From, Snapshot string
	// SourceIsGone is the user's word that the management cluster of the snapshot no longer runs.
	SourceIsGone bool
	// PauseElsewhere restores the clusters that another management cluster manages now, but paused. Without it, Restore refuses the snapshot.
	PauseElsewhere bool
	// AcceptDeletions allows Flux to delete objects that it applied before and that the fleet repo no longer has.
	AcceptDeletions bool
	// FenceOnly lets another tool, which runs in the namespace Admit, create the objects. Incomplete accepts that some objects are missing.
	FenceOnly, Incomplete bool
	Admit                 string
	// DryRun changes nothing. Abort undoes a restore that has not taken over.
	DryRun, Abort bool
}

// RestoreResult is what Restore did, or what it would do.
type RestoreResult struct {
	FormatVersion string `json:"formatVersion"`
	// Outcome is restored, planned, fenced, undone or nothing-to-do.
	Outcome  string        `json:"outcome"`
	Cluster  string        `json:"cluster"`
	Place    string        `json:"place,omitempty"`
	Snapshot *SnapshotInfo `json:"snapshot,omitempty"`
	Others   []string      `json:"others,omitempty"`
	// Arrival describes the objects that another tool has created behind the fence.
	Arrival    *handover.Arrival `json:"arrival,omitempty"`
	Report     *handover.Report  `json:"report,omitempty"`
	Kubeconfig string            `json:"kubeconfig,omitempty"`
	Next       []string          `json:"next"`
}

// SnapshotInfo describes a snapshot.
type SnapshotInfo struct {
	ID        string         `json:"id"`
	Taken     time.Time      `json:"taken"`
	By        string         `json:"by"`
	Clusters  []string       `json:"clusters"`
	Available []string       `json:"available"`
	Providers []string       `json:"providers"`
	Counts    map[string]int `json:"counts"`
}

func infoOf(s *snapshot.Snapshot) *SnapshotInfo {
	return &SnapshotInfo{
		ID: s.ID, Taken: s.Taken, By: s.By, Clusters: s.Clusters, Available: s.Available, Providers: s.Providers, Counts: s.Counts,
	}
}

// Restoration runs the steps of init, and takes over the objects of a snapshot before Flux begins. So Flux finds these objects, and creates
// none a second time.
type Restoration struct {
	session *session.Session
	init    *converge.Run
	Snap    *snapshot.Snapshot
	// AcceptDeletions: see RestoreOptions.
	AcceptDeletions bool

	pauseElsewhere bool
	// paused are the Clusters that are restored as paused.
	paused []string
	// seen are the fingerprints of the clusters' records of their owners; see handover.Holders.
	seen map[string]string

	report *steps.Value[*handover.Report]
}

// NewRestoration returns a Restoration that uses the steps of init. The caller sets its snapshot before the steps begin.
func NewRestoration(init *converge.Run) *Restoration {
	r := &Restoration{session: init.Session, init: init, report: steps.NewValue[*handover.Report]("the report of the restore")}
	init.Held = r.underWay
	return r
}

// Restore makes the management cluster that fleet.yaml describes, as init does, and gives it the objects of a snapshot before its Flux
// begins. It continues a restore that was interrupted.
func Restore(ctx context.Context, deps management.Deps, o RestoreOptions) (*RestoreResult, error) {
	if errs := validation.IsDNS1123Label(o.Admit); o.FenceOnly && len(errs) > 0 {
		return nil, diag.Usage("name a namespace", "--velero-namespace %q: %s", o.Admit, strings.Join(errs, "; "))
	}
	ctx, cancel := steps.WithTimeout(ctx, o.Timeout)
	defer cancel()
	s, done, err := session.OpenAlone(ctx, deps, o.Options, "fleetctl restore")
	if err != nil {
		return nil, err
	}
	defer done()
	if s.NewFleet {
		return nil, diag.Errorf("run the command in a clone of the fleet repo", "there is no fleet in %s", s.Opts.Dir)
	}
	if err := s.RefuseStandby(); err != nil {
		return nil, err
	}
	r := NewRestoration(converge.NewRun(s))
	if o.Abort {
		return r.abort(ctx)
	}
	if o.FenceOnly {
		return newAround(s, o).run(ctx)
	}
	place, err := s.OpenPlace(o.From)
	if err != nil {
		return nil, err
	}
	if r.Snap, err = FindSnapshot(ctx, s, place, o.Snapshot); err != nil {
		return nil, err
	}
	result := &RestoreResult{
		FormatVersion: "1", Outcome: "planned", Cluster: s.Mgmt.Name, Place: place.String(),
		Snapshot: infoOf(r.Snap), Next: []string{},
	}
	if result.Others, err = place.List(ctx); err != nil {
		return nil, err
	}
	result.Others = slices.DeleteFunc(result.Others, func(id string) bool { return id == r.Snap.ID })
	r.pauseElsewhere, r.AcceptDeletions = o.PauseElsewhere, o.AcceptDeletions
	err = r.Check(ctx, o.SourceIsGone)
	if o.DryRun {
		if err == nil {
			err = r.tryIntoWhatIsThere(ctx)
		}
		return result, r.wouldRefuse(ctx, err)
	}
	if err != nil {
		return nil, err
	}
	r.init.GoesOn = true
	if err := steps.Run(ctx, deps.Report, r.steps()); err != nil {
		return nil, err
	}
	result.Report, _ = r.report.Peek()
	result.Outcome, result.Kubeconfig = "restored", s.Cluster.Path(management.KubeconfigFile)
	result.Next = append(result.Next, "fleetctl status                # the clusters, and what is wrong")
	return result, nil
}

// InitSteps returns the steps of init, with the restore before Flux is connected.
func (r *Restoration) InitSteps() []steps.Step {
	return r.init.StepsAround(steps.Step{
		Name: stepRestore, Needs: []string{converge.StepPush, converge.StepFlux, converge.StepProviders},
		Work:    steps.Make3(r.report, r.takeIn, r.init.Client, r.init.Pushed, r.init.Manifests),
		Timeout: time.Hour,
		Hint:    "run the same command again to continue; until the take-over, `fleetctl restore --abort` undoes it",
	}, r.init.NameStep(stepRestore))
}

// underWay tells whether the restore of this snapshot is under way. The controllers may be stopped then.
func (r *Restoration) underWay(ctx context.Context, client *kube.Client) (bool, error) {
	journal, err := handover.ReadJournal(ctx, client)
	if err != nil {
		return false, err
	}
	return journal != nil && journal.Snapshot == r.Snap.ID && journal.Phase != handover.PhaseReleased, nil
}

func (r *Restoration) steps() []steps.Step {
	return append(r.InitSteps(), steps.Step{
		Name: StepAsBefore, Needs: []string{converge.StepSynced}, Work: steps.Do2(r.waitAsBefore, r.init.Client, r.report),
		Timeout: 15 * time.Minute,
		Hint:    "the snapshot is restored; `fleetctl status` shows what is wrong",
	})
}

// options returns the options of a restore that takes over, unlike that of a drill.
func (r *Restoration) options(
	client *kube.Client,
	attach func(context.Context, *kube.Client, func(string)) error,
	detail func(string),
) handover.RestoreOptions {
	o := restoreOptions(r.Snap, r.session.Side(client), func(progress handover.Progress) { detail(progress.String()) })
	o.Attach, o.Pause, o.Owners = attach, r.paused, r.seen
	return o
}

// takeIn gives the objects of the snapshot to the management cluster.
func (r *Restoration) takeIn(
	ctx context.Context,
	client *kube.Client,
	commit *following.Pushed,
	m *resolve.Manifests,
	detail func(string),
) (*handover.Report, error) {
	o := r.options(client, commit.Attach, detail)
	o.Check = r.tries(commit.View(m.Flux))
	report, err := handover.Restore(ctx, o)
	warn(r.session, report)
	r.init.Did()
	return report, err
}

// tries returns a check that rehearses Flux at the management cluster before the restore takes over.
func (r *Restoration) tries(have following.View) func(context.Context, *kube.Client) error {
	return func(ctx context.Context, at *kube.Client) error {
		return following.Rehearse(ctx, r.session, at, have, following.Rehearsal{
			Name: r.session.Mgmt.Name, AcceptDeletions: r.AcceptDeletions, Deleted: deletedHint, Warn: r.session.Deps.Report.Warn,
		})
	}
}

// deletedHint is the hint about objects of a snapshot that Flux would delete.
const deletedHint = "to let Flux delete them: --accept-deletions"

// waitAsBefore waits until the clusters that were Available in the snapshot are Available again.
func (r *Restoration) waitAsBefore(ctx context.Context, client *kube.Client, report *handover.Report, detail func(string)) error {
	manager, err := capi.New(client)
	if err != nil {
		return err
	}
	return waitAvailable(ctx, manager, report, detail)
}

// waitAvailable waits until the Clusters that were Available before, as the report says, are Available again.
func waitAvailable(ctx context.Context, manager *capi.Manager, report *handover.Report, detail func(string)) error {
	var clusters []kube.Key
	for _, full := range report.Available {
		clusters = append(clusters, kube.ParseKey(full))
	}
	if len(clusters) == 0 {
		return steps.NothingToDo("no cluster was Available before")
	}
	return manager.WaitAvailable(ctx, clusters, detail)
}

// abort undoes a restore that has not taken over.
func (r *Restoration) abort(ctx context.Context) (*RestoreResult, error) {
	result := &RestoreResult{FormatVersion: "1", Outcome: "nothing-to-do", Cluster: r.session.Mgmt.Name, Next: []string{}}
	if r.session.HostErr != nil {
		return nil, r.session.HostErr
	}
	there, err := standing.Find(ctx, r.session)
	if err != nil || there == nil {
		return result, err
	}
	if err := r.session.CheckClaim(there.Claim); err != nil {
		return nil, err
	}
	if err := undoable(ctx, there.Client); err != nil {
		return nil, err
	}
	step := r.session.Deps.Report.Start("undo the restore")
	side := handover.Side{Name: r.session.Mgmt.Name, Client: there.Client}
	result.Report, err = handover.AbortRestore(ctx, side, handover.Telling(step.Detail))
	if err != nil {
		step.Fail(err)
		return nil, err
	}
	step.Done()
	if result.Report != nil {
		result.Outcome = "undone"
		result.Next = append(result.Next, fmt.Sprintf("fleetctl teardown --management %s   # the management cluster, which manages nothing",
			r.session.Mgmt.Name))
	}
	return result, nil
}
