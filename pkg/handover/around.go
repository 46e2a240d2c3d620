package handover

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// AroundOptions are the options of a restore in which another tool, such as Velero, creates the objects.
type AroundOptions struct {
	// Fleet is the identity of the fleet.
	Fleet string
	// Target gets the work. Its providers and Flux are installed.
	Target Side
	// Admit is the namespace in which the other tool runs. The service accounts of this namespace may write behind the
	// fence.
	Admit string
	// Check, if not nil, judges the objects that have arrived. It is called before the fence closes for the other tool.
	// Every run calls it again behind the closed fence, because all objects have arrived only then. If Check fails, the
	// fence lets the other tool write again.
	Check func(context.Context, *Arrival) error
	// Paused, if not nil, says which of the Clusters, NAMESPACE/NAME, begin paused. It is called after Check.
	Paused func(cluster string) bool
	// Attach, Drain and Progress are as in Options.
	Attach   func(ctx context.Context, target *kube.Client, detail func(string)) error
	Drain    time.Duration
	Progress func(Progress)
}

// Arrival says which objects another tool has created so far.
type Arrival struct {
	// Counts of the objects by kind. Clusters are all Clusters, and Paused the paused ones.
	Counts   map[string]int `json:"counts"`
	Clusters []string       `json:"clusters"`
	Paused   []string       `json:"paused"`
	// Owners counts the objects that lack an owner reference, and Statuses those that lack a status which their
	// controller needs. TakeIn adds both.
	Owners   int `json:"owners"`
	Statuses int `json:"statuses"`
	// Absent are objects that did not arrive, and that controllers would create a second time. Unknown are objects that
	// arrived without their owner references, and whose owners fleetctl cannot find out.
	Absent  []string `json:"absent"`
	Unknown []string `json:"unknown"`
	// Seen is for Check to set: Holders.Seen of the Clusters that have arrived.
	Seen map[string]string `json:"-"`
	// Objects are all objects that have arrived.
	Objects []capi.Portable `json:"-"`
}

func openAround(ctx context.Context, o AroundOptions) (*run, error) {
	r := newRun(Options{
		Fleet: o.Fleet, Source: Side{Name: o.Target.Name}, Target: o.Target, Attach: o.Attach,
		Drain: o.Drain, Progress: o.Progress,
	})
	var err error
	r.target, err = openSide(ctx, o.Target)
	return r, err
}

// BeingFenced is the error for a management cluster that waits for the objects that another tool restores.
func BeingFenced(name string, j *Journal) error {
	return diag.Errorf("first finish the restore (`"+j.Command()+"`) or undo it (`fleetctl restore --abort`)",
		"%s is fenced, so that another tool can restore into it; %s began this", name, j.By)
}

// FenceAround fences the target, so that only the other tool can write the objects that providers act on. It stops the
// providers and Flux, and the API server denies all other writes. FenceAround continues an earlier run that was
// interrupted. If the fence exists already, it changes nothing.
func FenceAround(ctx context.Context, o AroundOptions) (_ *Report, err error) {
	ctx, tell, named := attend(ctx, o.Progress, o.Target)
	o.Progress = tell
	defer func() { err = named(err) }()
	r, err := openAround(ctx, o)
	if err != nil {
		return nil, err
	}
	if r.undoing() {
		if err := r.abortRestore(ctx); err != nil {
			return r.report(), err
		}
		return FenceAround(ctx, o)
	}
	if j := r.target.journal; j.Active() && j.Around && j.Admit != o.Admit {
		return r.report(), diag.Usage("`fleetctl restore --abort` first, or keep to that namespace", "%s is fenced for the namespace %s already",
			r.target.Name, j.Admit)
	}
	if r.target.journal.Fenced() {
		return r.report(), nil
	}
	if err := r.beginAround(ctx, o); err != nil {
		return r.report(), err
	}
	groups := r.target.journal.Groups
	if err := r.bypass(ctx, r.target, groups); err != nil {
		return r.report(), err
	}
	if err := r.target.raise(ctx, r.targetPolicy(groups)); err != nil {
		return r.report(), err
	}
	if err := r.target.untilAdmitted(ctx, r.target.journal.Admit, true); err != nil {
		return r.report(), err
	}
	for _, which := range []func(context.Context) ([]appsv1.Deployment, error){
		flux.NewSystem(o.Target.Client).Deployments, r.target.manager.ProviderDeployments,
	} {
		if err := r.halt(ctx, r.target, which); err != nil {
			return r.report(), err
		}
	}
	err = r.mark(ctx, PhaseFenced)
	return r.report(), err
}

// beginAround writes the journal, or takes over the journal of an earlier run.
func (r *run) beginAround(ctx context.Context, o AroundOptions) error {
	j := r.target.journal
	if j.Active() && j.Around {
		if err := r.act(ctx); err != nil {
			return err
		}
		return r.takeOverFences(ctx)
	}
	if err := Restorable(r.target.Name, j); err != nil {
		return err
	}
	graph, err := r.target.manager.Graph(ctx, capi.GraphOptions{WithFlux: true})
	if err != nil {
		return err
	}
	var clusters []kube.Ref
	for _, item := range graph.OfKind("Cluster") {
		clusters = append(clusters, item.Ref())
	}
	if err := inTheWay(r.target.Name, clusters); err != nil {
		return err
	}
	if err := r.target.opened(ctx); err != nil {
		return diag.Wrap("fence "+r.target.Name, err, "")
	}
	next := r.newJournal(RoleTarget, graph)
	next.Source, next.Target, next.Owner = r.target.party, r.target.party, r.target.party
	next.Around, next.Admit = true, o.Admit
	if next.Groups, err = r.target.manager.Groups(ctx); err != nil {
		return err
	}
	if next.There, err = r.isThere(ctx, graph, next.Groups); err != nil {
		return err
	}
	next.over(j)
	if err := r.target.put(ctx, next); err != nil {
		return err
	}
	return r.become()
}

// isThere returns the UIDs of all objects that existed before the fence, so that an abort does not delete them. An abort
// deletes whole kinds, and not only objects that belong to a Cluster. The UIDs include those of Secrets and ConfigMaps,
// because a restored object may name a Secret that existed before.
func (r *run) isThere(ctx context.Context, graph *capi.Graph, groups []string) ([]string, error) {
	beside, err := r.target.manager.InGroups(ctx, append([]string{""}, groups...)...)
	if err != nil {
		return nil, err
	}
	there := []string{}
	for _, obj := range slices.Concat(objectsOf(graph), beside) {
		there = append(there, string(obj.GetUID()))
	}
	slices.Sort(there)
	return slices.Compact(there), nil
}

func objectsOf(graph *capi.Graph) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, item := range graph.Items {
		objects = append(objects, item.Unstructured)
	}
	return append(objects, graph.Leave...)
}

// cameSince returns the objects that an abort deletes: those that have arrived since the fence. It returns all objects
// of the fenced API groups, whether they belong to a Cluster or not, because an abort may come before the Clusters
// arrive, and controllers would act on objects that are left. It returns only Secrets and ConfigMaps that belong to a
// Cluster: one that a Cluster only names may be the target's own.
func (r *run) cameSince(ctx context.Context) ([]*unstructured.Unstructured, error) {
	graph, err := r.target.manager.Graph(ctx, capi.GraphOptions{WithFlux: true})
	if err != nil {
		return nil, err
	}
	fenced, err := r.target.manager.InGroups(ctx, r.target.journal.Groups...)
	if err != nil {
		return nil, err
	}
	leave := map[string]bool{}
	for _, uid := range r.target.journal.There {
		leave[uid] = true
	}
	for _, item := range graph.Items {
		if item.Shared && item.GroupVersionKind().Group == "" {
			leave[string(item.GetUID())] = true
		}
	}
	var came []*unstructured.Unstructured
	for _, obj := range slices.Concat(objectsOf(graph), fenced) {
		if uid := string(obj.GetUID()); !leave[uid] {
			leave[uid] = true // the object is in both lists
			came = append(came, obj)
		}
	}
	return came, nil
}

// Fenced tells whether the management cluster waits for the objects that another tool restores, or has begun to take
// them in.
func (j *Journal) Fenced() bool { return j.Active() && j.Around && j.Phase.reached(PhaseFenced) }

// Arrived looks at the objects that the other tool has brought so far. It changes nothing.
func Arrived(ctx context.Context, o AroundOptions) (*Arrival, error) {
	r, err := openAround(ctx, o)
	if err != nil {
		return nil, err
	}
	arrival, _, err := r.arrived(ctx)
	return arrival, err
}

func (r *run) arrived(ctx context.Context) (*Arrival, *capi.Graph, error) {
	r.target.manager.Forget()
	graph, err := r.target.manager.Graph(ctx, capi.GraphOptions{WithFlux: true})
	if err != nil {
		return nil, nil, err
	}
	repairs := graph.Repairs()
	a := &Arrival{
		Counts: graph.Counts(), Clusters: graph.Clusters(), Paused: []string{}, Owners: repairs.Owners(), Statuses: repairs.Statuses(),
		Absent: repairs.Absent, Unknown: repairs.Unknown,
	}
	for _, stray := range graph.Strays {
		a.Unknown = append(a.Unknown, stray.String())
	}
	slices.Sort(a.Unknown)
	for _, item := range graph.OfKind("Cluster") {
		if paused, _, _ := unstructured.NestedBool(item.Object, "spec", "paused"); paused {
			a.Paused = append(a.Paused, item.Ref().Key.String())
		}
	}
	a.Objects, err = graph.Portable()
	return a, graph, err
}

// TakeIn makes the target the owner of the objects that the other tool has created. It closes the fence for the other
// tool too, repairs the objects, takes the work over in one write, and starts the providers and Flux. TakeIn continues
// an earlier run that was interrupted.
func TakeIn(ctx context.Context, o AroundOptions) (_ *Report, err error) {
	ctx, tell, named := attend(ctx, o.Progress, o.Target)
	o.Progress = tell
	defer func() { err = named(err) }()
	r, err := openAround(ctx, o)
	if err != nil {
		return nil, err
	}
	j := r.target.journal
	switch {
	case j != nil && j.Around && j.Phase == PhaseReleased:
		return r.report(), nil
	case !j.Fenced(): // an interrupted FenceAround may have left a provider running
		return r.report(), diag.Errorf("run `fleetctl restore --fence-only` first", "%s is not fenced", r.target.Name)
	}
	if !j.Phase.Committed() {
		if err := r.closeAround(ctx, o); err != nil {
			return r.report(), err
		}
		if err := r.repair(ctx, o); err != nil {
			return r.report(), err
		}
		if err := r.commit(ctx); err != nil {
			return r.report(), err
		}
	}
	return r.report(), r.release(ctx)
}

// closeAround closes the fence for the other tool too. Before that, it calls Check on the objects that have arrived so
// far: an error then comes while the other tool can still correct the objects.
func (r *run) closeAround(ctx context.Context, o AroundOptions) error {
	if err := r.act(ctx); err != nil {
		return err
	}
	if err := r.takeOverFences(ctx); err != nil {
		return err
	}
	if r.target.journal.Phase.reached(PhaseCopied) {
		return r.target.untilAdmitted(ctx, r.target.journal.Admit, false)
	}
	arrival, _, err := r.arrived(ctx)
	if err == nil && o.Check != nil {
		err = o.Check(ctx, arrival)
	}
	if err != nil {
		return err
	}
	// The journal is written before the policy: if a run is killed between the two writes, the next run closes the fence.
	if err := r.mark(ctx, PhaseCopied); err != nil {
		return err
	}
	if err := r.target.raise(ctx, r.targetPolicy(nil)); err != nil {
		return err
	}
	return r.target.untilAdmitted(ctx, r.target.journal.Admit, false)
}

// reopenAround lets the other tool write again. It writes the journal before the policy: if a run is killed between the
// two writes, the next run opens the fence.
func (r *run) reopenAround(ctx context.Context) error {
	next := *r.target.journal
	next.Phase = PhaseFenced
	if err := r.target.put(ctx, &next); err != nil {
		return err
	}
	if err := r.target.raise(ctx, r.targetPolicy(nil)); err != nil {
		return err
	}
	return r.target.untilAdmitted(ctx, r.target.journal.Admit, true)
}

// judgeAround calls Check on the objects once nobody can add to them. Every run calls Check, because no run keeps its
// result, and another management cluster may have taken a Cluster over since. The journal names the Clusters that begin
// paused before the first of them is written, so that a later run pauses them even if it cannot ask Paused.
func (r *run) judgeAround(ctx context.Context, o AroundOptions, arrival *Arrival) error {
	if o.Check != nil {
		if err := o.Check(ctx, arrival); err != nil {
			if reopenErr := r.reopenAround(ctx); reopenErr != nil {
				return errors.Join(err, reopenErr)
			}
			return err
		}
	}
	next := *r.target.journal
	next.Pause = slices.Clone(next.Pause)
	for _, cluster := range arrival.Clusters {
		if o.Paused != nil && o.Paused(cluster) && !slices.Contains(next.Pause, cluster) {
			next.Pause = append(next.Pause, cluster)
		}
	}
	if len(next.Pause) == len(r.target.journal.Pause) {
		return nil
	}
	return r.target.put(ctx, &next)
}

// repair adds the owner references and the statuses that the objects lack. It lists the objects again, because the list
// is final only now that nobody can add to it.
func (r *run) repair(ctx context.Context, o AroundOptions) error {
	arrival, graph, err := r.arrived(ctx)
	if err != nil {
		return err
	}
	if err := r.judgeAround(ctx, o, arrival); err != nil {
		return err
	}
	const most = 5
	for i, unknown := range arrival.Unknown {
		if i == most {
			r.warn("and %d more", len(arrival.Unknown)-most)
			break
		}
		r.warn("%s has no owner reference, and fleetctl cannot find out its owner: its provider has to adopt it", unknown)
	}
	err = r.target.manager.Repair(ctx, graph, capi.RepairOptions{
		ID: r.target.journal.ID, Progress: r.count(PhaseCopied, "repairing the objects that arrived at "+r.target.Name),
		Paused: func(cluster string) bool { return slices.Contains(r.target.journal.Pause, cluster) },
	})
	if err != nil {
		return err
	}
	r.tell(PhaseVerified, "checking that no object lacks its owner or status")
	_, graph, err = r.arrived(ctx)
	if err != nil {
		return err
	}
	if lacks := graph.Repairs().Unrepaired(); lacks != "" {
		return diag.Wrap("repair the objects that arrived at "+r.target.Name, errors.New(lacks), "run the same command again; "+r.undoHint())
	}
	next := *r.target.journal
	next.Moved, next.Clusters, next.Epoch = graph.Counts(), graph.Clusters(), graph.Epoch()
	next.Owners = map[string]string{}
	maps.Copy(next.Owners, arrival.Seen)
	maps.Copy(next.Owners, r.target.journal.Owners) // an earlier run may have claimed them since it looked
	return r.target.put(ctx, &next)
}
