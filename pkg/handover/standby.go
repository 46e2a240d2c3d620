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

// RoleStandby is a management cluster at rest: its providers are stopped and it is fenced, until it takes over from another one. No
// hand-over is under way then.
const RoleStandby Role = "standby"

// Fetcher is the controller of Flux that goes on at a standby: it fetches the fleet repo, and applies nothing.
const Fetcher = "source-controller"

// inventoryGroup is clusterctl's list of what is installed. No provider acts on it, and an upgrade of a standby writes it.
const inventoryGroup = "clusterctl.cluster.x-k8s.io"

// Standby is what a standby knows: whose it is, and what was last seen of that one's snapshots.
type Standby struct {
	// Of is the management cluster that it takes over from.
	Of string `json:"of"`
	// Seen is the last snapshot that was tried on it; nil where none was.
	Seen *Seen `json:"seen,omitempty"`
}

// Seen is a snapshot that was tried on a standby.
type Seen struct {
	Snapshot string `json:"snapshot"`
	// Taken is when the snapshot was, and At when it was tried.
	Taken time.Time `json:"taken"`
	At    time.Time `json:"at"`
	// Works tells that nothing was found that would keep the standby from taking over with it. Problems are what was found.
	Works    bool     `json:"works"`
	Problems []string `json:"problems"`
	// Clusters of the snapshot, and how many objects arrived.
	Clusters []string `json:"clusters"`
	Objects  int      `json:"objects"`
}

// IsStandby tells whether it is the journal of a standby at rest.
func (j *Journal) IsStandby() bool { return j != nil && j.Role == RoleStandby && j.Standby != nil }

// wasStandby tells whether an abort of what the journal is about leaves a standby behind.
func (j *Journal) wasStandby() bool { return j != nil && j.Before.IsStandby() }

// AtRest is the error of who would work with a standby as with a management cluster that has work.
func AtRest(name string, j *Journal) error {
	return diag.Errorf("work with "+j.Standby.Of+"; `fleetctl standby activate "+name+"` has "+name+" take over where that one is lost",
		"%s is a standby of %s, and manages nothing", name, j.Standby.Of)
}

// StandbyOptions of MakeStandby.
type StandbyOptions struct {
	// Fleet is the identity of the fleet.
	Fleet string
	// Target becomes the standby of the management cluster Of. Its providers and Flux are installed.
	Target Side
	Of     string
	// Drain and Progress are those of Options.
	Drain    time.Duration
	Progress func(Progress)
}

// MakeStandby puts a management cluster without any work to rest: the API server denies all writes to what providers act on, the providers
// are stopped, and of Flux only what fetches the fleet repo goes on. It changes nothing where that is so, and goes on where an earlier run
// was cut off. changed tells whether it did anything. A standby of another one becomes that of this one, since it has nothing of either:
// another standby may have taken over from that.
func MakeStandby(ctx context.Context, o StandbyOptions) (changed bool, err error) {
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
	return changed, r.manages(ctx) // one may have come before the fence did
}

// RefuseWork refuses to make a standby of a management cluster that has Clusters. It only looks: whoever would stop providers asks before.
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
	return diag.Errorf("give the standby another host in fleet.yaml. To have this one hand over what it has, "+
		"declare it under managementClusters: `fleetctl pivot`, `fleetctl cluster transfer`",
		"%s manages clusters, %s for one: it cannot be a standby", name, clusters[0].FullName())
}

// manages refuses a management cluster that has Clusters: it is no standby.
func (r *run) manages(ctx context.Context) error {
	return refuseWork(ctx, r.target.Name, r.target.manager)
}

// noteStandby writes the journal, where it does not say so yet.
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
	next := r.newJournal(RoleStandby, &capi.Graph{})
	next.Phase, next.Target, next.Groups, next.Standby, next.Activates = PhaseFenced, r.target.party, groups, &Standby{Of: of}, false
	if j.IsStandby() && j.Standby.Of == of {
		next.Standby = j.Standby
	}
	if j != nil {
		next.version = j.version // what it has been before counts no more
	}
	return true, r.target.put(ctx, next)
}

// closed tells whether the fence is there as the standby's journal says, and keeps an administrator away.
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

// restingFlux are the controllers of Flux that are stopped at a standby.
func (r *run) restingFlux(ctx context.Context) ([]appsv1.Deployment, error) {
	all, err := flux.NewSystem(r.target.Client).Deployments(ctx)
	return slices.DeleteFunc(all, func(d appsv1.Deployment) bool { return d.Name == Fetcher }), err
}

// running are those that are not stopped.
func running(ctx context.Context, which func(context.Context) ([]appsv1.Deployment, error)) ([]appsv1.Deployment, error) {
	deployments, err := which(ctx)
	return slices.DeleteFunc(deployments, func(d appsv1.Deployment) bool { return d.Spec.Replicas != nil && *d.Spec.Replicas == 0 }), err
}

// standbyPolicy denies all writes to what the providers of a standby act on.
func standbyPolicy(j *Journal) policy {
	return policy{
		user: j.user(), groups: j.Groups, command: j.Command(),
		message: "it is a standby of " + j.Standby.Of + ", and manages nothing; `fleetctl standby activate " + j.Target.Name +
			"` has it take over",
	}
}

// restAgain is the end of an abort at a standby: it is what it was, and nobody could act in between.
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

// EndStandby makes a standby none, where its cluster stays and the command that asks for it gives that up: everybody may write there again,
// its controllers run as on any other cluster that has them, and it fetches nothing. The journal goes last, so that a run that was cut off
// is run again. It does nothing where there is no standby at rest.
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

// See notes at a standby what was seen of a snapshot. It fails where the standby is none any more.
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
	return diag.Errorf("`fleetctl init --management "+name+"` makes it one, where fleet.yaml declares it under spec.standbys",
		"%s is no standby", name)
}

// Try restores a snapshot into a standby up to where that would take over, and undoes it: nobody acts on the copies at any moment. The
// report says what arrived and, as warnings, what is missing.
func Try(ctx context.Context, o RestoreOptions) (*Report, error) {
	o.Target.Standby = true
	if err := AbortTry(ctx, o.Target); err != nil { // one that was killed
		return nil, err
	}
	r := newRun(o.hand())
	report, err := r.rehearse(ctx, o)
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), time.Minute) // an interrupt leaves it as it was, too
		defer cancel()
	}
	return report, errors.Join(err, abortTry(ctx, o.Target, r.runner))
}

// AbortTry undoes a try that was cut off, or that goes on elsewhere; it does nothing at a standby at rest. Whatever else is under way at
// the target, or was, is an error, and is left: it is somebody's who takes over.
func AbortTry(ctx context.Context, target Side) error { return abortTry(ctx, target, "") }

// abortTry is AbortTry of that runner's alone, where there is one. That it is the one that was looked at holds until the end: the journal
// is written by compare-and-swap.
func abortTry(ctx context.Context, target Side, runner string) error {
	r := newRun(Options{Target: target})
	var err error
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

// IsUsed is the error of who would try something on what is no standby at rest: j is the journal of one that takes over, or has done so.
func IsUsed(name string, j *Journal) error {
	if j.Active() {
		return InTheMiddle(name, j)
	}
	return diag.Errorf("pull the fleet repo if it is behind. `fleetctl standby activate "+name+"` finishes it where fleet.yaml still has "+
		name+" as a standby",
		"%s is a standby no more: it has taken over from %s", name, j.Source.Name)
}

// Resting is how a standby is.
type Resting struct {
	Standby
	// Fenced tells whether its API server keeps everybody away from what providers act on, Running are those of its providers that somebody
	// has started.
	Fenced  bool
	Running []string
}

// LookAtStandby reads how a standby is; nil where the management cluster is none, which one request tells. It changes nothing.
func LookAtStandby(ctx context.Context, target Side) (*Resting, error) {
	j, err := ReadJournal(ctx, target.Client)
	if err != nil || !j.IsStandby() {
		return nil, err
	}
	s := &side{Side: target, journal: j}
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
