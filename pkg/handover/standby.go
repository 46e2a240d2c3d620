package handover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
)

// RoleStandby is the role of a management cluster at rest: its providers are stopped, and it is fenced until it takes
// over from another management cluster. No hand-over is under way while a journal has this role.
const RoleStandby Role = "standby"

// Fetcher is the controller of Flux that keeps running at a standby. It fetches the fleet repo, and applies nothing.
const Fetcher = "source-controller"

// inventoryGroup is the API group of clusterctl's inventory. The fence of a standby leaves it out: no provider acts on
// the inventory, and an upgrade of the standby writes it.
const inventoryGroup = "clusterctl.cluster.x-k8s.io"

// Standby names the management cluster of a standby, and the last snapshot that was tried.
type Standby struct {
	// Of is the management cluster that the standby takes over from.
	Of string `json:"of"`
	// Seen is the last snapshot that was tried on the standby; nil if none was.
	Seen *Seen `json:"seen,omitempty"`
}

// Seen is a snapshot that was tried on a standby.
type Seen struct {
	Snapshot string `json:"snapshot"`
	// Taken is when the snapshot was taken, and At when the last try ended. If the last try could not open its snapshot, Snapshot and Taken
	// are those of the try before it, or empty.
	Taken time.Time `json:"taken"`
	At    time.Time `json:"at"`
	// Works says that the standby could take over with this snapshot. Problems are the reasons why it could not.
	Works    bool     `json:"works"`
	Problems []string `json:"problems"`
	// Clusters of the snapshot, and how many objects arrived.
	Clusters []string `json:"clusters"`
	Objects  int      `json:"objects"`
}

// IsStandby tells whether the journal is of a standby at rest.
func (j *Journal) IsStandby() bool { return j != nil && j.Role == RoleStandby && j.Standby != nil }

// wasStandby tells whether an abort of this hand-over makes the management cluster a standby at rest again.
func (j *Journal) wasStandby() bool { return j != nil && j.Before.IsStandby() }

// AtRest is the error for a command that needs a management cluster with work, and got a standby at rest.
func AtRest(name string, j *Journal) error {
	return diag.Errorf("work with "+j.Standby.Of+"; `fleetctl standby activate "+name+"` has "+name+" take over if "+j.Standby.Of+" is lost",
		"%s is a standby of %s, and manages nothing", name, j.Standby.Of)
}

// StandbyOptions are the options of MakeStandby.
type StandbyOptions struct {
	// Fleet is the identity of the fleet.
	Fleet string
	// Target becomes the standby of the management cluster Of. Its providers and Flux are installed.
	Target Side
	Of     string
	// Drain and Progress are as in Options.
	Drain    time.Duration
	Progress func(Progress)
}

// MakeStandby makes a management cluster without work a standby at rest. The API server then denies all writes to the
// objects that providers act on, the providers are stopped, and of Flux only the Fetcher runs. MakeStandby continues an
// earlier run that was interrupted. changed tells whether it changed anything. A standby of another management cluster
// becomes a standby of o.Of, because another standby may have taken over from the former one.
func MakeStandby(ctx context.Context, o StandbyOptions) (changed bool, err error) {
	ctx, tell, named := attend(ctx, o.Progress, o.Target)
	o.Progress = tell
	defer func() { err = named(err) }()
	r := newRun(Options{Fleet: o.Fleet, Target: o.Target, Drain: o.Drain, Progress: o.Progress})
	if r.target, err = lookAtSide(ctx, o.Target); err != nil {
		return false, err
	}
	j := r.target.journal
	if !j.IsStandby() {
		if err := Restorable(o.Target.Name, j); err != nil {
			return false, err
		}
	}
	if err := r.manages(ctx); err != nil {
		return false, err
	}
	if changed, err = r.noteStandby(ctx, o.Of); err != nil {
		return changed, err
	}
	if err := r.become(); err != nil {
		return changed, err
	}
	closed, err := r.closed(ctx)
	if err == nil && (changed || !closed) {
		changed = true
		err = r.target.raise(ctx, r.targetPolicy(nil))
	}
	if err != nil {
		return changed, err
	}
	for _, which := range []func(context.Context) ([]appsv1.Deployment, error){r.restingFlux, r.target.manager.ProviderDeployments} {
		started, err := running(ctx, which)
		if err != nil {
			return changed, err
		}
		changed = changed || len(started) > 0
		if err := r.halt(ctx, r.target, which); err != nil {
			return changed, err
		}
	}
	return changed, r.manages(ctx) // somebody may have created a Cluster before the fence was up
}

// RefuseWork returns an error if a management cluster that should become a standby has Clusters. It changes nothing, so
// callers can call it before they stop providers.
func RefuseWork(ctx context.Context, target Side) error {
	manager, err := capi.New(target.Client)
	if err != nil {
		return err
	}
	return refuseWork(ctx, target.Name, manager)
}

func refuseWork(ctx context.Context, name string, manager *capi.Manager) error {
	clusters, err := manager.Clusters(ctx)
	if err != nil || len(clusters) == 0 {
		return err
	}
	return diag.Errorf("give the standby another host in fleet.yaml; or, to hand over its clusters (`fleetctl pivot`, "+
		"`fleetctl cluster transfer`), declare it under managementClusters",
		"%s manages clusters, such as %s: it cannot be a standby", name, clusters[0].FullName())
}

// manages returns an error if the management cluster has Clusters, and so cannot be a standby.
func (r *run) manages(ctx context.Context) error {
	return refuseWork(ctx, r.target.Name, r.target.manager)
}

// noteStandby writes the journal, if it does not name this standby yet.
func (r *run) noteStandby(ctx context.Context, of string) (changed bool, err error) {
	groups, err := r.target.manager.Groups(ctx)
	if err != nil {
		return false, err
	}
	groups = slices.DeleteFunc(groups, func(g string) bool { return g == inventoryGroup })
	j := r.target.journal
	if j.IsStandby() && slices.Equal(j.Groups, groups) && j.Standby.Of == of {
		return false, nil
	}
	if err := r.target.opened(ctx); err != nil {
		return false, diag.Wrap("fence "+r.target.Name, err, "")
	}
	next := r.newJournal(RoleStandby, &capi.Graph{})
	next.Phase, next.Target, next.Groups, next.Standby, next.Activates = PhaseFenced, r.target.party, groups, &Standby{Of: of}, false
	if j.IsStandby() && j.Standby.Of == of {
		next.Standby = j.Standby
	}
	if j != nil {
		next.version = j.version // replace the journal without keeping it in Before: an abort must not restore its role
	}
	return true, r.target.put(ctx, next)
}

// closed tells whether the fence covers the API groups of the standby's journal, and denies the writes of an
// administrator.
func (r *run) closed(ctx context.Context) (bool, error) {
	fenced, err := r.target.isFencedAs(ctx, standbyPolicy(r.target.journal))
	if err != nil || !fenced {
		return false, err
	}
	err = probe(ctx, r.target.Client)
	if err == nil || denied(err) {
		return denied(err), nil
	}
	return false, fmt.Errorf("look at the fence of %s: %w", r.target.Name, err)
}

// restingFlux returns the controllers of Flux that are stopped at a standby.
func (r *run) restingFlux(ctx context.Context) ([]appsv1.Deployment, error) {
	all, err := flux.NewSystem(r.target.Client).Deployments(ctx)
	return slices.DeleteFunc(all, func(d appsv1.Deployment) bool { return d.Name == Fetcher }), err
}

// running returns the given Deployments that are not scaled to 0.
func running(ctx context.Context, which func(context.Context) ([]appsv1.Deployment, error)) ([]appsv1.Deployment, error) {
	deployments, err := which(ctx)
	return slices.DeleteFunc(deployments, func(d appsv1.Deployment) bool { return d.Spec.Replicas != nil && *d.Spec.Replicas == 0 }), err
}

// standbyPolicy denies all writes to the objects that the providers of a standby act on.
func standbyPolicy(j *Journal) policy {
	return policy{
		user: j.user(), groups: j.Groups, command: j.Command(),
		message: "it is a standby of " + j.Standby.Of + ", and manages nothing; `fleetctl standby activate " + j.Target.Name +
			"` has it take over",
	}
}

// restAgain ends an abort at a standby, and leaves the standby at rest as before. A fence covers the copies all the
// time.
func (r *run) restAgain(ctx context.Context) error {
	s, before := r.target, r.target.journal.Before
	as, err := s.Client.As(before.user(), administrators)
	if err != nil {
		return err
	}
	s.as = as
	if err := s.raise(ctx, standbyPolicy(before)); err != nil {
		return err
	}
	if err := s.restoreWebhooks(ctx); err != nil {
		return err
	}
	injectors, err := s.manager.Injectors(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.Drain)
	defer cancel()
	err = s.startThese(ctx, injectors, func(detail string) { r.tell(PhaseAborting, s.Name+": "+detail) })
	if err != nil {
		return diag.Wrap("start the controllers of "+s.Name, err, "run the same command again")
	}
	return r.putBack(ctx, s)
}

// EndStandby ends the role of a standby whose cluster stays. Its API server allows all writes again, its controllers run
// as before, and its Flux fetches nothing. EndStandby deletes the journal last, so that the next run can finish an
// interrupted one. If the target is no standby at rest, EndStandby does nothing.
func EndStandby(ctx context.Context, target Side) error {
	r := newRun(Options{Target: target})
	var err error
	if r.target, err = lookAtSide(ctx, target); err != nil || !r.target.journal.IsStandby() {
		return err
	}
	if err := r.manages(ctx); err != nil {
		return err
	}
	if err := r.target.lower(ctx); err != nil {
		return err
	}
	all, err := r.target.deployments(ctx)
	if err != nil {
		return err
	}
	if _, err := r.target.scaleBack(ctx, all); err != nil {
		return err
	}
	if err := flux.NewSystem(target.Client).EndFetch(ctx); err != nil {
		return err
	}
	return r.target.journal.drop(ctx, target.Client)
}

// See writes the result of a try into the standby's journal. It returns an error if the management cluster is no longer
// a standby.
func See(ctx context.Context, target Side, seen *Seen) error {
	s, err := lookAtSide(ctx, target)
	if err != nil {
		return err
	}
	if s.journal.Active() {
		return InTheMiddle(target.Name, s.journal)
	}
	if !s.journal.IsStandby() {
		return notStandby(target.Name)
	}
	next := *s.journal
	next.Standby = &Standby{Of: s.journal.Standby.Of, Seen: seen}
	return s.put(ctx, &next)
}

func notStandby(name string) error {
	return diag.Errorf("declare it in fleet.yaml under spec.standbys, and run `fleetctl init --management "+name+"`",
		"%s is no standby", name)
}

// Try restores a snapshot into a standby up to the commit, and undoes this. No controller acts on the copies at any
// moment. The report says what arrived. Its warnings say what is missing.
func Try(ctx context.Context, o RestoreOptions) (*Report, error) {
	o.Target.Standby = true
	if err := AbortTry(ctx, o.Target); err != nil { // an earlier try that was killed
		return nil, err
	}
	r := newRun(o.hand())
	report, err := r.rehearse(ctx, o)
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), time.Minute) // an interrupt must not keep the try from being undone
		defer cancel()
	}
	return report, errors.Join(err, abortTry(ctx, o.Target, r.runner))
}

// AbortTry undoes a try that was interrupted, or that another run works on. It does nothing at a standby at rest. If the
// standby is taking over or has taken over, AbortTry changes nothing and returns an error.
func AbortTry(ctx context.Context, target Side) error { return abortTry(ctx, target, "") }

// abortTry is AbortTry, but undoes only a try of the given runner, unless runner is empty. The runner cannot change
// between the check and the abort, because the journal is written by compare-and-swap.
func abortTry(ctx context.Context, target Side, runner string) (err error) {
	ctx, _, named := attend(ctx, nil, target)
	defer func() { err = named(err) }()
	r := newRun(Options{Target: target})
	if r.target, err = openSide(ctx, target); err != nil {
		return err
	}
	switch j := r.target.journal; {
	case j.IsStandby():
		return nil
	case runner != "" && (!j.Tried() || j.Runner != runner):
		return diag.Wrap("undo the try at "+target.Name, ErrOvertaken, diag.Hint(ErrOvertaken))
	case !j.Tried():
		return IsUsed(target.Name, j)
	}
	return r.abortRestore(ctx)
}

// IsUsed is the error for a try on a standby that is taking over or has taken over. j is the journal of the standby.
func IsUsed(name string, j *Journal) error {
	if j.Active() {
		return InTheMiddle(name, j)
	}
	return diag.Errorf("pull the fleet repo if your clone is behind; if fleet.yaml still declares "+name+" as a standby, "+
		"`fleetctl standby activate "+name+"` finishes the activation",
		"%s is no longer a standby: it has taken over from %s", name, j.Source.Name)
}

// Resting is the state of a standby.
type Resting struct {
	Standby
	// Fenced tells whether the API server of the standby denies writes to the objects that providers act on. Running are
	// the providers that are not stopped, as they should be.
	Fenced  bool
	Running []string
}

// LookAtStandby reads the state of a standby, and changes nothing. If the management cluster is no standby, it returns
// nil after a single request.
func LookAtStandby(ctx context.Context, target Side) (*Resting, error) {
	j, err := ReadJournal(ctx, target.Client)
	if err != nil || !j.IsStandby() {
		return nil, err
	}
	return j.LookAtStandby(ctx, target)
}

// LookAtStandby is LookAtStandby of the standby whose journal is j.
func (j *Journal) LookAtStandby(ctx context.Context, target Side) (*Resting, error) {
	s := &side{Side: target, journal: j}
	var err error
	if s.manager, err = capi.New(target.Client); err != nil {
		return nil, err
	}
	resting := &Resting{Standby: *j.Standby}
	if resting.Fenced, err = (&run{target: s}).closed(ctx); err != nil {
		return nil, err
	}
	started, err := running(ctx, s.manager.ProviderDeployments)
	for i := range started {
		resting.Running = append(resting.Running, started[i].Namespace+"/"+started[i].Name)
	}
	slices.Sort(resting.Running)
	return resting, err
}
