package pivot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

const (
	stepFence  = "fence it"
	stepTakeIn = "take in the restored objects"
)

// restoreKind is the kind of Velero's object for one restore.
var restoreKind = schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "Restore"}

// around is a restore in which another tool, such as Velero, creates the objects. It takes two runs, maybe on two machines. The first run
// makes a management cluster and fences it. The second run takes in the objects that the tool has created.
type around struct {
	session *session.Session
	init    *converge.Run
	opts    RestoreOptions

	paused map[string]string // the Clusters that other management clusters manage, with a sentence about each
	warned map[string]bool   // the warnings that are printed already: a run judges the objects twice
	report *steps.Value[*handover.Report]
	result *RestoreResult
}

func newAround(s *session.Session, o RestoreOptions) *around {
	a := &around{
		session: s, init: converge.NewRun(s), opts: o, paused: map[string]string{}, warned: map[string]bool{},
		report: steps.NewValue[*handover.Report]("the report of the restore"),
		result: &RestoreResult{FormatVersion: "1", Outcome: "planned", Cluster: s.Mgmt.Name, Next: []string{}},
	}
	a.init.GoesOn, a.init.Held = true, held
	return a
}

// held tells whether the controllers are stopped for a restore by another tool.
func held(ctx context.Context, client *kube.Client) (bool, error) {
	journal, err := handover.ReadJournal(ctx, client)
	return err == nil && journal.Active() && journal.Around, err
}

func (a *around) run(ctx context.Context) (*RestoreResult, error) {
	if a.session.HostErr != nil {
		return nil, a.session.HostErr
	}
	if record, err := a.session.Cluster.Load(); err == nil && record.PivotedTo != "" {
		return nil, diag.Errorf("`fleetctl status` shows it", "the management cluster %s was pivoted to %s, which has its work",
			record.Name, record.PivotedTo)
	}
	there, err := standing.Find(ctx, a.session)
	if err != nil {
		return nil, err
	}
	var journal *handover.Journal
	if there != nil {
		if err := a.session.CheckClaim(there.Claim); err != nil {
			return nil, err
		}
		if journal, err = handover.ReadJournal(ctx, there.Client); err != nil {
			return nil, err
		}
		if !journal.Active() || !journal.Around {
			if err := handover.Restorable(a.session.Mgmt.Name, journal); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case a.opts.DryRun && journal.Fenced():
		return a.result, a.rehearse(ctx, there.Client)
	case a.opts.DryRun:
		a.result.Next = []string{"fleetctl restore --fence-only --source-is-gone    # makes the management cluster and fences it"}
		return a.result, nil
	case journal.Fenced():
		return a.result, a.takeIn(ctx)
	}
	if begun, err := a.begun(journal, func() (int, error) {
		clusters, err := management.Clusters(ctx, there.Client)
		return len(clusters), err
	}); err != nil || begun {
		if err != nil {
			return nil, err
		}
		return a.result, a.takeIn(ctx)
	}
	if !a.opts.SourceIsGone && !journal.Active() {
		return nil, diag.Errorf("if it is gone, add --source-is-gone. If it is not gone, two management clusters would act on the same machines",
			"a backup does not tell whether its management cluster is gone")
	}
	return a.result, a.fence(ctx)
}

// begun tells whether the target has taken over already, so that only the last steps of init may be left to do. A run with --source-is-gone
// begins another restore if the Clusters of the first restore are gone.
func (a *around) begun(journal *handover.Journal, clusters func() (int, error)) (bool, error) {
	if journal == nil || !journal.Around || journal.Phase != handover.PhaseReleased {
		return false, nil
	}
	if !a.opts.SourceIsGone {
		return true, nil
	}
	n, err := clusters()
	return n > 0, err
}

func (a *around) options(client *kube.Client) handover.AroundOptions {
	return handover.AroundOptions{
		Fleet: a.session.Identity(), Target: handover.Side{Name: a.session.Mgmt.Name, Client: client}, Admit: a.opts.Admit, Check: a.check,
		Paused: func(cluster string) bool { return a.paused[cluster] != "" },
	}
}

// fence makes the management cluster as init does, but does not connect Flux to the fleet repo. Then it fences the management cluster.
func (a *around) fence(ctx context.Context) error {
	all := converge.UpTo(a.init.Steps(), converge.StepHost, converge.StepProviders, converge.StepFlux)
	all = append(all, steps.Step{
		Name: stepFence, Needs: []string{converge.StepHost, converge.StepProviders, converge.StepFlux}, Timeout: 15 * time.Minute,
		Hint: "run the same command again to continue",
		Work: steps.Make1(a.report, func(ctx context.Context, client *kube.Client, detail func(string)) (*handover.Report, error) {
			o := a.options(client)
			o.Progress = func(progress handover.Progress) { detail(progress.String()) }
			return handover.FenceAround(ctx, o)
		}, a.init.Client),
	})
	if err := steps.Run(ctx, a.session.Deps.Report, all); err != nil {
		return err
	}
	a.result.Report, _ = a.report.Peek()
	a.result.Outcome, a.result.Kubeconfig = "fenced", a.session.Cluster.Path(management.KubeconfigFile)
	a.result.Next = append(a.result.Next,
		"velero restore create --from-backup BACKUP --wait    # with Velero in the namespace "+a.opts.Admit+" of this management cluster",
		"fleetctl restore --fence-only --dry-run              # the objects that have arrived, and what they lack",
		"fleetctl restore --fence-only                        # repairs the objects, and starts the management cluster")
	return nil
}

// takeIn repairs the objects that have arrived, gives the work to the management cluster, and continues with the steps of init.
func (a *around) takeIn(ctx context.Context) error {
	err := steps.Run(ctx, a.session.Deps.Report, a.init.StepsAround(steps.Step{
		Name: stepTakeIn, Needs: []string{converge.StepPush, converge.StepFlux, converge.StepProviders}, Timeout: time.Hour,
		Work: steps.Make2(a.report,
			func(ctx context.Context, client *kube.Client, commit *following.Pushed, detail func(string)) (*handover.Report, error) {
				o := a.options(client)
				o.Attach = commit.Attach
				o.Progress = func(progress handover.Progress) { detail(progress.String()) }
				report, err := handover.TakeIn(ctx, o)
				warn(a.session, report)
				a.init.Did()
				return report, err
			}, a.init.Client, a.init.Pushed),
		Hint: "run the same command again to continue; until the take-over, `fleetctl restore --abort` undoes it",
	}, a.init.NameStep(stepTakeIn)))
	if err != nil {
		return err
	}
	a.result.Report, _ = a.report.Peek()
	a.result.Outcome, a.result.Kubeconfig = "restored", a.session.Cluster.Path(management.KubeconfigFile)
	a.result.Next = append(a.result.Next, "fleetctl status                # the clusters, and what is wrong")
	return nil
}

// check returns an error if objects are missing, or if another management cluster manages some of them now.
func (a *around) check(ctx context.Context, arrival *handover.Arrival) error {
	refusals, err := a.look(ctx, arrival)
	if err != nil || len(refusals) == 0 {
		return err
	}
	return refusals[0]
}

// rehearse warns of everything that check would refuse. The user may uninstall Velero after a rehearsal without warnings, and with it the
// objects that tell whether the restore has finished. So the rehearsal has to look at these.
func (a *around) rehearse(ctx context.Context, client *kube.Client) error {
	arrival, err := handover.Arrived(ctx, a.options(client))
	if err != nil {
		return err
	}
	refusals, err := a.look(ctx, arrival)
	for _, refusal := range refusals {
		a.warn("without --dry-run, this command would refuse to take in the objects: " + refusal.Error())
	}
	return err
}

// look finds every reason not to take in the arrived objects.
func (a *around) look(ctx context.Context, arrival *handover.Arrival) ([]error, error) {
	a.result.Arrival = arrival
	there, err := standing.Find(ctx, a.session)
	if err != nil {
		return nil, err
	}
	if there == nil {
		return nil, diag.Errorf("run the same command again", "the management cluster %s no longer runs", a.session.Mgmt.Name)
	}
	restores, err := there.Client.ListKind(ctx, restoreKind)
	if err != nil {
		return nil, fmt.Errorf("look at Velero's restores: %w", err)
	}
	declared, problems, err := declaredClusters(ctx, a.session)
	if err != nil {
		return nil, err
	}
	// A cluster that answered the first time, and does not answer now, still belongs to the other management cluster.
	holders, err := otherOwners(ctx, a.session, heldClusters{
		names: arrival.Clusters, objects: arrival.Objects, fleet: a.session.Identity(), managementCluster: a.session.Mgmt.Name,
	})
	if err != nil {
		return nil, err
	}
	if len(holders.Silent) > 0 {
		a.warn(aboutSilent(holders.Silent))
	}
	maps.Copy(a.paused, holders.Others)
	arrival.Seen = holders.Seen
	return a.refusals(arrival, restores, absent(arrival, declared, problems)), nil
}

// refusals returns the reasons not to take in the arrived objects. The one that the user has to mend first comes first. It prints lesser
// problems as warnings.
func (a *around) refusals(arrival *handover.Arrival, restores []unstructured.Unstructured, absent []error) []error {
	var refusals []error
	if len(restores) == 0 && a.opts.DryRun {
		a.warn("cannot find out whether Velero has finished: this cluster has no Restore of Velero")
	}
	if err := restoresEnded(restores, a.warn); err != nil {
		refusals = append(refusals, err)
	}
	if len(arrival.Clusters) == 0 {
		refusals = append(refusals,
			notReady("let Velero restore into this cluster, and run the same command again; `fleetctl restore --abort` removes the fence",
				errors.New("no Cluster has arrived yet")))
	}
	if len(absent) > 0 && !a.opts.Incomplete {
		refusals = append(refusals, notReady("restore these objects too, and run the same command again; --incomplete continues without them",
			errors.Join(absent...)))
	} else {
		for _, missing := range absent {
			a.warn(missing.Error())
		}
	}
	if len(arrival.Paused) > 0 {
		a.warn("these clusters were paused when the backup was taken, and stay paused: " + strings.Join(arrival.Paused, ", "))
	}
	if len(a.paused) > 0 && !a.opts.PauseElsewhere {
		refusals = append(refusals,
			diag.Errorf("--pause-elsewhere restores these clusters paused, and `fleetctl cluster detach` removes them afterwards; nothing has been "+
				"changed",
				"other management clusters manage these clusters by now: %s", saysOf(a.paused)))
	}
	return refusals
}

// warn prints each warning once.
func (a *around) warn(says string) {
	if !a.warned[says] {
		a.warned[says] = true
		a.session.Deps.Report.Warn(says)
	}
}

func notReady(hint string, err error) error {
	return &diag.Error{Op: "look at the restored objects", Err: err, Hint: hint, Code: diag.ExitNotReady}
}

// absent returns an error for each object that did not arrive, as far as the arrived objects and Git name it. A part of Git that fleetctl
// cannot read is an error too, because it may declare more objects.
func absent(arrival *handover.Arrival, declared map[string]bool, problems []diag.Finding) []error {
	var absent []error
	for _, says := range arrival.Absent {
		absent = append(absent, errors.New(says))
	}
	came := map[string]bool{}
	for _, full := range arrival.Clusters {
		_, name, _ := strings.Cut(full, "/")
		came[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		if !came[name] {
			absent = append(absent, fmt.Errorf("cluster %s is declared in Git and did not arrive: Flux would create it, perhaps a second time",
				name))
		}
	}
	for _, p := range problems {
		absent = append(absent, fmt.Errorf("%s: cannot find out whether the objects that it declares have arrived (see `fleetctl validate`)", p))
	}
	return absent
}

// undoable returns an error if the other tool has not finished its restore: without the fence, controllers would act on the objects that
// still arrive.
func undoable(ctx context.Context, client *kube.Client) error {
	journal, err := handover.ReadJournal(ctx, client)
	if err != nil || !journal.Active() || !journal.Around {
		return err
	}
	restores, err := client.ListKind(ctx, restoreKind)
	if err != nil {
		return fmt.Errorf("look at Velero's restores: %w", err)
	}
	return restoresEnded(restores, func(string) {})
}

// restoresEnded returns an error while a restore of Velero runs, and warns of restores that did not bring all objects.
func restoresEnded(restores []unstructured.Unstructured, warn func(string)) error {
	for _, r := range restores {
		phase, _, _ := unstructured.NestedString(r.Object, "status", "phase")
		switch phase {
		case "Completed":
		case "Failed", "PartiallyFailed", "FailedValidation":
			warn(fmt.Sprintf("Velero's restore %s is %s: `velero restore describe %s` shows what failed", r.GetName(), phase, r.GetName()))
		default:
			return notReady("wait until it is Completed (`velero restore get`), and run the same command again; if Velero no longer runs: "+
				"`velero restore delete "+r.GetName()+"`",
				fmt.Errorf("restore %s of Velero has not ended: %q", r.GetName(), phase))
		}
	}
	return nil
}
