package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// startPatience is how long a process that is not ready holds its slot, which keeps others from starting.
const startPatience = 3 * time.Second

// reconcile makes one Deployment's process fit its spec, and writes the process's state to the Deployment's status.
func (r *Runner) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	d := &appsv1.Deployment{}
	err := r.client.Get(ctx, req.NamespacedName, d)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if err != nil || isDeleted(d) {
		return ctrl.Result{}, r.remove(ctx, req.NamespacedName)
	}
	rec, err := r.recordOf(ctx, d)
	if err != nil {
		return ctrl.Result{}, err
	}
	if wantedReplicas(d) == 0 {
		if err := r.halt(ctx, rec); err != nil {
			return ctrl.Result{}, err
		}
		rec.lastErr, rec.planned = nil, 0
	} else if r.outdated(d, rec) {
		if rec.lastErr = r.update(ctx, d, rec); rec.lastErr != nil {
			rec.planned = 0
		}
	}
	wait, err := r.report(ctx, d, rec)
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.again(rec, wait)
}

// outdated tells whether the process or its folders may have to change.
func (r *Runner) outdated(d *appsv1.Deployment, rec *record) bool {
	dirty := r.takeDirty(rec.key)
	renew := rec.nextRenewal()
	return dirty || rec.planned != d.Generation || !renew.IsZero() && time.Now().After(renew)
}

// again says when to reconcile the Deployment again: at a rollout's deadline, a token's renewal, or for another try.
func (r *Runner) again(rec *record, wait time.Duration) (ctrl.Result, error) {
	var refused *refusal
	var missing *missingError
	switch {
	case rec.lastErr == nil || errors.As(rec.lastErr, &refused) || errors.As(rec.lastErr, &missing):
	default:
		return ctrl.Result{}, rec.lastErr // the rate limiter delays the next try
	}
	if renew := rec.nextRenewal(); !renew.IsZero() {
		if left := max(time.Until(renew), time.Second); wait == 0 || left < wait {
			wait = left
		}
	}
	return ctrl.Result{RequeueAfter: wait}, nil
}

// update makes a plan, and starts a new process if the plan has changed. As long as planning fails, the old process stays.
func (r *Runner) update(ctx context.Context, d *appsv1.Deployment, rec *record) error {
	key := rec.key
	if rec.rollout != d.Generation {
		if i := rec.current(); i == nil || i.generation != d.Generation {
			rec.begun, rec.complete = time.Now(), false
		}
		rec.rollout = d.Generation
		rec.tokens, rec.creds.next = tokenCache{}, time.Time{} // the new template may need other tokens, or none
	}
	refs := needs(d.Namespace, &d.Spec.Template.Spec)
	r.use(key, refs, nil)
	p, err := r.plan(ctx, d, rec)
	if err != nil {
		return err
	}
	r.use(key, refs, p.services)
	i := rec.current()
	if i != nil && i.plan.hash == p.hash {
		i.generation = d.Generation
		i.supervisor.SetSpec(p.spec) // for the next start: values from Secrets may have changed
		rec.planned = d.Generation
		return nil
	}
	if d.Spec.Paused && i != nil {
		return nil
	}
	if err := r.halt(ctx, rec); err != nil {
		return err
	}
	if changed, err := r.ports.replace(key.String()); err != nil {
		return err
	} else if changed {
		if p, err = r.plan(ctx, d, rec); err != nil {
			return err
		}
	}
	if err := r.launch(ctx, d, rec, p); err != nil {
		return err
	}
	rec.planned = d.Generation
	return nil
}

// launch waits for a slot and starts the process. The process holds the slot until it is ready, has ended, or startPatience has passed.
func (r *Runner) launch(ctx context.Context, d *appsv1.Deployment, rec *record, p *plan) error {
	select {
	case r.starting <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	r.mu.Lock()
	if r.stopped {
		r.mu.Unlock()
		<-r.starting
		return context.Canceled
	}
	key := rec.key
	opts := process.SupervisorOptions{BackOff: r.opts.BackOff, MaxBackOff: r.opts.MaxBackOff}
	i := start(p, d.Generation, r.opts.Network.Dial, opts, func() { r.changed(key) }) //nolint:contextcheck // the process outlives this call
	rec.setInstance(i)
	r.mu.Unlock()
	go func() {
		defer func() { <-r.starting }()
		select {
		case <-i.answered:
		case <-time.After(startPatience):
		}
	}()
	r.recorder.Eventf(d, nil, corev1.EventTypeNormal, "Started", "Start", "started %s of image %s as a process", podName(d),
		d.Spec.Template.Spec.Containers[0].Image)
	return nil
}

// halt ends the Deployment's process, if it has one.
func (r *Runner) halt(ctx context.Context, rec *record) error {
	i := rec.current()
	if i == nil {
		return nil
	}
	if err := i.stop(ctx, i.plan.grace); err != nil {
		return err
	}
	rec.setInstance(nil)
	return nil
}

// recordOf returns the record of this Deployment. If the record belongs to a deleted Deployment of the same name, recordOf first removes
// the process and data of the deleted one. The uid in the folder tells the two apart, even if the Deployment was deleted while no runner
// ran.
func (r *Runner) recordOf(ctx context.Context, d *appsv1.Deployment) (*record, error) {
	rec, err := r.record(client.ObjectKeyFromObject(d))
	if err != nil || rec.uid == d.UID {
		return rec, err
	}
	if rec.uid != "" {
		if err := r.remove(ctx, rec.key); err != nil {
			return nil, err
		}
		if rec, err = r.record(rec.key); err != nil {
			return nil, err
		}
	}
	rec.uid = d.UID
	return rec, atomicfile.Write(filepath.Join(rec.dir, uidFile), []byte(d.UID), 0o600)
}

// sweep removes the folders of Deployments that were deleted while no runner ran.
func (r *Runner) sweep(ctx context.Context) error {
	if !r.manager.GetCache().WaitForCacheSync(ctx) {
		return nil
	}
	names, err := Deployments(r.opts.Dir)
	if err != nil {
		return err
	}
	for _, each := range names {
		namespace, name, _ := strings.Cut(each, "/")
		key := types.NamespacedName{Namespace: namespace, Name: name}
		if err := r.client.Get(ctx, key, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
			continue
		}
		if _, err := r.record(key); err != nil {
			return err
		}
		r.changed(key) // its reconcile removes the folder
	}
	return nil
}

// remove ends the process of a deleted Deployment and removes its files.
func (r *Runner) remove(ctx context.Context, key types.NamespacedName) error {
	r.mu.Lock()
	rec := r.records[key]
	r.mu.Unlock()
	if rec == nil {
		return nil
	}
	if err := r.halt(ctx, rec); err != nil {
		return err
	}
	r.use(key, nil, nil)
	r.takeDirty(key)
	if err := errors.Join(os.RemoveAll(rec.dir), r.ports.release(key.String())); err != nil {
		return err
	}
	r.mu.Lock()
	delete(r.records, key)
	r.mu.Unlock()
	return nil
}

// report writes the Deployment's status, and makes events of new trouble. wait is when to look again; 0 is never.
func (r *Runner) report(ctx context.Context, d *appsv1.Deployment, rec *record) (wait time.Duration, err error) {
	s := situation{now: time.Now(), err: rec.lastErr, begun: rec.begun, done: rec.complete}
	if i := rec.current(); i != nil {
		v := i.view()
		s.view, s.current = &v, i.generation == d.Generation && rec.lastErr == nil
		s.clash = r.clashOf(rec, &v)
		r.renewPorts(rec, &v)
	}
	status, wait := statusOf(d, s)
	if status.UpdatedReplicas == wantedReplicas(d) && status.UnavailableReplicas == 0 {
		rec.complete = true
	}
	r.tell(d, rec, s)
	// Compare with the last written status. The cache may still have an earlier status. If the status goes back to that one, a comparison
	// with the cache would find no change.
	if rec.reported != nil && rec.reportedFor == d.UID {
		d.Status = *rec.reported
	}
	if equality.Semantic.DeepEqual(status, d.Status) {
		return wait, nil
	}
	old := d.DeepCopy()
	d.Status = status
	if err = r.client.Status().Patch(ctx, d, client.MergeFrom(old)); err == nil {
		rec.reported, rec.reportedFor = status.DeepCopy(), d.UID
	}
	return wait, client.IgnoreNotFound(err)
}

// renewPorts chooses other ports for a process that ended before it was ready, if other programs have taken its ports.
func (r *Runner) renewPorts(rec *record, v *view) {
	if v.status.Phase != process.PhaseBackOff {
		return
	}
	if changed, err := r.ports.replace(rec.key.String()); err == nil && changed {
		rec.planned = 0
		r.setDirty(rec.key)
		r.changed(rec.key)
	}
}

// tell makes an event of new trouble.
func (r *Runner) tell(d *appsv1.Deployment, rec *record, s situation) {
	text, reason := trouble(d, s), reasonOf(s)
	id := reason + text
	switch {
	case reason == "MinimumReplicasUnavailable": // the process is starting or its probe fails; the condition is enough
		id = ""
	case s.view != nil && s.view.status.Phase == process.PhaseBackOff:
		id = reason + s.view.status.NextStart.String()
	}
	if id == "" || id == rec.told || text == "" {
		return
	}
	rec.told = id
	if reason == "CrashLoopBackOff" {
		reason = "BackOff"
	}
	kind := corev1.EventTypeWarning
	if reason == "WaitingForObjects" {
		kind = corev1.EventTypeNormal
	}
	r.recorder.Eventf(d, nil, kind, reason, "Run", "%s", text)
}
