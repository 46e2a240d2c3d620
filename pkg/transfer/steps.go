package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

const (
	stepQuiet     = "stop the source's Flux from applying it"
	stepHandOver  = "hand it over"
	stepAvailable = "wait until it is Available again"
	stepRepo      = "move it in the fleet repo"
	stepFlux      = "wait for the target's Flux to apply it"
	stepTidy      = "remove what the source's Flux has of it"
)

// plan looks at the remotes and at both sides, rehearses the change of the fleet repo, and changes nothing.
func (t *transfer) plan(ctx context.Context) error {
	if !t.handedOver() {
		if err := t.checkCarry(ctx); err != nil {
			return err
		}
		if !t.journal.Active() {
			to, err := handover.ClusterUID(ctx, t.to.client)
			if err != nil {
				return err
			}
			if err := handover.RefuseAnothers(ctx, t.handOptions(nil).Source, t.key, to); err != nil {
				return err
			}
		}
		plan, err := handover.Look(ctx, t.handOptions(nil))
		if t.result.Plan = plan; err != nil {
			return err
		}
		if !t.journal.Active() { // the fence of a transfer under way denies these dry runs; that transfer rehearses behind its fence
			if err := t.rehearse(ctx, t.to.client, t.from.client); err != nil {
				return err
			}
			if err := t.tellSuspended(ctx); err != nil {
				return err
			}
		}
	}
	if t.declared {
		return nil
	}
	if err := t.arrive(ctx, true); err != nil {
		return err
	}
	o := t.opts.Change
	o.DryRun, o.Edit, o.Confirm = true, t.edit, nil
	changed, err := change.Make(ctx, o)
	t.result.Change = changed
	return err
}

// tellSuspended warns of the HelmReleases and Kustomizations of the cluster that somebody has suspended at the source. The fleet repo, from
// which the target's Flux makes them, does not have to know of that.
func (t *transfer) tellSuspended(ctx context.Context) error {
	if t.from.client == nil {
		return nil
	}
	refs, err := flux.NewSystem(t.from.client).SuspendedFor(ctx, t.release, capi.KubeconfigSecret(t.key))
	if err == nil {
		refs, err = t.unknownToRepo(refs)
	}
	if err != nil || len(refs) == 0 {
		return err
	}
	t.Report.Warn(fmt.Sprintf("suspended at %s: %s. The Flux of %s applies them as the fleet repo says: if they are to stay suspended, set "+
		"spec.suspend there first", t.from.target.Name, strings.Join(namesOf(refs), ", "), t.to.target.Name))
	return nil
}

// unknownToRepo leaves out what Git suspends at the target, too: what the rehearsal has found, and the cluster's own HelmRelease if the
// cluster is paused in the fleet repo (`fleetctl cluster pause`). That moves along with its file.
func (t *transfer) unknownToRepo(refs []kube.Ref) ([]kube.Ref, error) {
	refs = slices.DeleteFunc(slices.Clone(refs), func(ref kube.Ref) bool {
		ref.Version = "" // another version of it is the same object
		return t.suspendedThere[ref]
	})
	repo, err := fleetrepo.Open(t.opts.Change.Dir)
	if err != nil {
		return nil, err
	}
	at, err := declaredAt(repo, t.opts.Cluster)
	if err != nil || !slices.ContainsFunc(at, func(c fleetrepo.Cluster) bool { return c.Paused }) {
		return refs, err
	}
	return slices.DeleteFunc(refs, func(ref kube.Ref) bool { return ref.Kind == "HelmRelease" && ref.Key == t.release }), nil
}

func namesOf(refs []kube.Ref) []string {
	names := make([]string, len(refs))
	for i, ref := range refs {
		names[i] = ref.String()
	}
	return names
}

// run makes all changes of a transfer.
func (t *transfer) run(ctx context.Context) error {
	t.result.Change, t.result.Arrival = nil, nil
	all := []steps.Step{
		{Name: stepQuiet, Run: t.quiet, Timeout: 2 * time.Minute},
		{
			Name: stepHandOver, Needs: []string{stepQuiet}, Run: t.handOver, Timeout: 30 * time.Minute,
			Hint: "run the same command again to continue; before the commit, --abort undoes it",
		},
		{
			Name: stepAvailable, Needs: []string{stepHandOver}, Run: t.waitAvailable, Timeout: 15 * time.Minute,
			Hint: "the target has taken over; `fleetctl status` shows what is wrong there",
		},
		{Name: stepRepo, Needs: []string{stepHandOver}, Run: t.changeRepo},
	}
	if err := t.giveBack(ctx, steps.Run(ctx, t.Report, all)); err != nil {
		return err
	}
	t.result.Outcome = "handed-over"
	if !t.reachesFlux() {
		t.result.Next = append(t.result.Next, t.whatIsLeft()+", then run `fleetctl cluster transfer "+t.name+" --to "+t.to.target.Name+
			"` again to finish")
		return nil
	}
	const again = "the fleet repo has the cluster at its new place; once Flux has applied this (a channel of tags needs a promotion), " +
		"run the same command again to finish"
	err := steps.Run(ctx, t.Report, []steps.Step{
		{Name: stepFlux, Run: t.waitTakenUp, Timeout: 10 * time.Minute, Hint: again},
		{Name: stepTidy, Needs: []string{stepFlux}, Run: t.tidy, Timeout: 10 * time.Minute, Hint: again},
	})
	if err != nil {
		return err
	}
	t.result.Outcome = "transferred"
	t.result.Next = append(t.result.Next, "fleetctl backup --management "+t.from.target.Name+
		"    # earlier snapshots still have this cluster, and restoring one would make two management clusters manage it")
	return nil
}

// reachesFlux tells whether the branch that Flux reads already has the change of the fleet repo.
func (t *transfer) reachesFlux() bool {
	c := t.result.Change
	switch {
	case c == nil || !c.Changed:
		return true
	case c.PullRequest != nil || c.Branch != "":
		return false // the change waits in the branch of a pull request
	}
	return c.Pushed || t.local && c.Commit != ""
}

// whatIsLeft returns what the user has to do before the next run.
func (t *transfer) whatIsLeft() string {
	if c := t.result.Change; c != nil && c.PullRequest != nil {
		return "merge " + c.PullRequest.URL
	}
	return "commit and push the changes in the fleet repo"
}

func (t *transfer) quiet(ctx context.Context, _ func(string)) error {
	if t.from.client == nil {
		return steps.NothingToDo("the source is gone")
	}
	refs, err := flux.NewSystem(t.from.client).LetGo(ctx, t.release, capi.KubeconfigSecret(t.key))
	if err == nil && len(refs) == 0 {
		return steps.NothingToDo("it has stopped")
	}
	return err
}

func (t *transfer) handOver(ctx context.Context, detail func(string)) error {
	if t.over {
		return steps.NothingToDo(t.to.target.Name + " has it")
	}
	o := t.handOptions(detail)
	o.Check = func(ctx context.Context, at *kube.Client) error {
		if err := t.quietAgain(ctx); err != nil {
			return err
		}
		return t.rehearse(ctx, at, nil)
	}
	report, err := handover.Run(ctx, o)
	t.result.Report = report
	if report != nil {
		for _, warning := range report.Warnings {
			t.Report.Warn(warning)
		}
	}
	return err
}

func (t *transfer) waitAvailable(ctx context.Context, detail func(string)) error {
	if t.before && t.declared {
		return steps.NothingToDo("the run of the hand-over has waited")
	}
	if t.result.Report == nil || len(t.result.Report.Available) == 0 {
		return steps.NothingToDo("it was not Available before")
	}
	manager, err := capi.New(t.to.client)
	if err != nil {
		return err
	}
	return manager.WaitAvailable(ctx, []kube.Key{t.key}, detail)
}

// changeRepo moves the cluster's folder in the fleet repo.
func (t *transfer) changeRepo(ctx context.Context, _ func(string)) error {
	if t.declared {
		return steps.NothingToDo("it is at its new place")
	}
	o := t.opts.Change
	if t.before && !o.Commit && !o.Push && !o.PullRequest {
		return diag.Errorf("if the change is merged, run `git pull`; else add --push, --pr or, without a remote, --commit",
			"%[3]s has taken over cluster %[1]s, which the fleet repo here still has at %[2]s", t.name, t.from.target.Name, t.to.target.Name)
	}
	if err := t.arrive(ctx, false); err != nil {
		return diag.Wrap("", err, hintAfter(err))
	}
	o.Edit, o.Confirm = t.edit, nil
	changed, err := change.Make(ctx, o)
	t.result.Change = changed
	return diag.Wrap("", err, hintAfter(err))
}

// arrive adds the cluster to the target's own fleet repo, if it has one, before the other fleet repo drops the cluster.
func (t *transfer) arrive(ctx context.Context, dryRun bool) error {
	if t.opts.Into == nil || t.arrived {
		return nil
	}
	o, err := t.arrival()
	if err != nil {
		return err
	}
	o.DryRun, o.Push, o.Commit = dryRun, !dryRun, false
	t.result.Arrival, err = change.Make(ctx, o)
	return diag.Wrap("change the fleet repo of "+t.to.target.Name, err, diag.Hint(err))
}

// arrival returns the edit of the target's own fleet repo.
func (t *transfer) arrival() (change.Options, error) {
	return t.arrivalIn(t.opts.Change.Dir, t.opts.Into.Dir)
}

// arrivalIn is arrival with the fleet repo's files in dir and those of the target's own in into.
func (t *transfer) arrivalIn(dir, into string) (change.Options, error) {
	o := t.opts.Change
	from, err := fleetrepo.Open(dir)
	if err != nil {
		return o, err
	}
	o.Dir, o.Git, o.Confirm = into, t.opts.Into.Git, nil
	o.Edit = func(repo *fleetrepo.Repo) (*fleetrepo.Edit, error) {
		return from.TransferInto(repo, t.editOptions(), t.opts.Into.Reseal)
	}
	return o, nil
}

// hintAfter returns the hint for a failed change of the fleet repo: nothing is lost.
func hintAfter(err error) string {
	const safe = "the target has the cluster, and no Flux applies it until then; run the same command again"
	if hint := diag.Hint(err); hint != "" {
		return hint + "; " + safe
	}
	return safe
}

// waitTakenUp waits until the target's Flux has applied the cluster. It first removes the mark of an earlier transfer in the other
// direction, which stops the target's Flux from applying the cluster.
func (t *transfer) waitTakenUp(ctx context.Context, detail func(string)) error {
	if err := flux.NewSystem(t.to.client).TakeBack(ctx, t.key.Namespace, capi.KubeconfigSecret(t.key)); err != nil {
		return err
	}
	if t.release.Name == "" { // only an earlier run has read the name from the source
		manager, err := capi.New(t.to.client)
		if err != nil {
			return err
		}
		object, err := manager.ClusterObject(ctx, t.key)
		if err != nil {
			return err
		}
		t.release = flux.ReleaseOf(object)
	}
	return flux.NewSystem(t.to.client).WaitReleased(ctx, t.release, detail)
}

func (t *transfer) tidy(ctx context.Context, detail func(string)) error {
	if t.from.client == nil {
		return steps.NothingToDo("the source is gone")
	}
	return flux.NewSystem(t.from.client).ForgetLetGo(ctx, capi.KubeconfigSecret(t.key), detail)
}

// abort undoes a transfer that is not committed.
func (t *transfer) abort(ctx context.Context) (*Result, error) {
	if t.over {
		return nil, diag.Errorf("to get the cluster back, transfer it in the other direction",
			"%s has taken the cluster over: this cannot be undone", t.to.target.Name)
	}
	if t.from.client == nil {
		return nil, diag.Errorf("start the source", "the source %s does not run", t.from.target.Name)
	}
	return t.undo(ctx, handover.Abort)
}

// abortAlone is abort without a target, which is gone.
func (t *transfer) abortAlone(ctx context.Context) (_ *Result, err error) {
	if t.from.client, err = t.from.target.Client(ctx); err != nil {
		return nil, err
	}
	if t.journal, err = handover.ReadJournal(ctx, t.from.client); err != nil {
		return nil, err
	}
	if t.journal == nil || !t.journal.IsTransferOf(t.name) {
		return t.takeBack(ctx)
	}
	if err := t.known(t.journal); err != nil {
		return nil, err
	}
	return t.undo(ctx, handover.AbortAlone)
}

// undo lets the source's Cluster API manage the cluster again, and then lets the source's Flux apply it again.
func (t *transfer) undo(ctx context.Context, how func(context.Context, handover.Options) (*handover.Report, error)) (*Result, error) {
	step := t.Report.Start("undo the transfer")
	report, err := how(ctx, t.handOptions(step.Detail))
	if err == nil || errors.Is(err, handover.ErrLeft) {
		err = errors.Join(err, flux.NewSystem(t.from.client).TakeBack(ctx, t.key.Namespace, capi.KubeconfigSecret(t.key)))
	}
	if err != nil {
		step.Fail(err)
		return nil, err
	}
	step.Done()
	t.result.Report, t.result.Outcome = report, "undone"
	return t.result, nil
}

// takeBack is an abort before the hand-over has begun. An earlier run has at most stopped the source's Flux from applying the cluster.
func (t *transfer) takeBack(ctx context.Context) (*Result, error) {
	t.result.Outcome = "nothing-to-do"
	kubeconfig := capi.KubeconfigSecret(t.declaredKey())
	system := flux.NewSystem(t.from.client)
	left, err := system.LetGoLeft(ctx, kubeconfig)
	if err != nil || len(left) == 0 {
		return t.result, err
	}
	t.result.Outcome = "undone"
	return t.result, system.TakeBack(ctx, kubeconfig.Namespace, kubeconfig)
}
