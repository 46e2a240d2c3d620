package handover

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/ownership"
)

// side is one management cluster, with what a run needs of it.
type side struct {
	Side

	party   Party
	journal *Journal
	as      *kube.Client  // impersonates the hand-over's user, whom the fence admits
	manager *capi.Manager // uses as once there is a hand-over, and the administrator's client before that
	// borrowed says that the side has taken part in another hand-over since, so its journal names that one. The field
	// journal then has the content that the journal had before, and is not written.
	borrowed bool
}

// run is one run of a hand-over.
type run struct {
	Options

	source, target *side // nil for a side that cannot be reached any more
	// past says that the journals are of a finished hand-over, and that the caller asks for another one.
	past  bool
	tries bool // the run is a try, which is undone in any case
	// stands are the API groups that stand has fenced at the target. It is nil before stand has run.
	stands     []string
	runner, by string
	// began says that no earlier run has worked on this hand-over. behind are the objects that were found behind the fence, and copies their
	// copies at the target. Both are nil if this run has not looked. Nobody but the hand-over can write to these objects since.
	began  bool
	behind *capi.Graph
	copies []*unstructured.Unstructured

	mu       sync.Mutex
	warnings []string
}

func newRun(o Options) *run {
	o.BlockMove, o.Drain = cmp.Or(o.BlockMove, DefaultBlockMove), cmp.Or(o.Drain, DefaultDrain)
	return &run{Options: o, runner: rand.Text()[:8], by: ownership.Somebody()}
}

// open looks at both sides and finds the current hand-over, if there is one. It changes nothing.
func open(ctx context.Context, o Options) (*run, error) {
	r := newRun(o)
	var err error
	if o.Target.Client == nil {
		return nil, diag.Errorf("give a kubeconfig of the target", "a hand-over needs access to its target")
	}
	if r.target, err = openSide(ctx, o.Target); err != nil {
		return nil, err
	}
	if o.Source.Client != nil {
		if r.source, err = openSide(ctx, o.Source); err != nil {
			return nil, err
		}
	}
	if err := r.agree(); err != nil {
		return nil, err
	}
	r.recall()
	return r, r.lookBack(ctx)
}

// lookBack finds out whether the caller asks for the finished hand-over of the journals, or for another one. The caller
// asks for another one if other Clusters are selected, or if the source has a selected Cluster again.
func (r *run) lookBack(ctx context.Context) error {
	if r.source == nil || r.source.journal == nil {
		return nil
	}
	if err := r.tookOver(ctx); err != nil || r.target.journal == nil {
		return err
	}
	s, t := r.source.journal, r.target.journal
	if t.Role == RoleTarget && t.Phase == PhaseCommitted && s.ID != t.ID {
		r.source = nil // the target has noted that the source was done, and has taken part in another hand-over since
		return nil
	}
	if s.ID != t.ID || s.Active() || t.Active() {
		return nil
	}
	if !slices.Equal(s.Select, r.selection()) {
		r.past = true
		return nil
	}
	if r.whole() {
		return nil
	}
	clusters, err := r.source.manager.Clusters(ctx)
	if err != nil {
		return err
	}
	for _, c := range clusters {
		r.past = r.past || slices.Contains(s.Select, c.FullName())
	}
	return nil
}

// openSource is open for a hand-over without a target.
func openSource(ctx context.Context, o Options) (*run, error) {
	r := newRun(o)
	var err error
	r.source, err = openSide(ctx, o.Source)
	return r, err
}

func openSide(ctx context.Context, given Side) (*side, error) {
	s, err := lookAtSide(ctx, given)
	if err != nil {
		return nil, err
	}
	switch j := s.journal; {
	case j.IsStandby() && !given.Standby:
		return nil, AtRest(given.Name, j)
	case given.Standby && !j.IsStandby() && (j == nil || !j.Activates):
		return nil, notStandby(given.Name)
	}
	return s, nil
}

// lookAtSide is openSide, but accepts a management cluster of every role.
func lookAtSide(ctx context.Context, given Side) (*side, error) {
	s := &side{Side: given}
	var err error
	if s.manager, err = capi.New(given.Client); err != nil {
		return nil, err
	}
	s.party.Name = given.Name
	if s.party.UID, err = ClusterUID(ctx, given.Client); err != nil {
		return nil, diag.Wrap("reach the API server of "+given.Name, err, "this machine must be able to reach it")
	}
	s.journal, err = ReadJournal(ctx, given.Client)
	return s, err
}

// ClusterUID returns the UID of a cluster's namespace kube-system, which no other cluster has.
func ClusterUID(ctx context.Context, c *kube.Client) (string, error) {
	system := &corev1.Namespace{}
	err := kube.Retry(ctx, func(ctx context.Context) error { return c.Get(ctx, kube.Key{Name: "kube-system"}, system) })
	return string(system.UID), err
}

// agree compares the journals of both sides with each other, and with what the caller asks for.
func (r *run) agree() error {
	t := r.target.journal
	if r.source == nil {
		if t == nil || t.Role != RoleTarget || !t.Phase.reached(PhaseCommitted) {
			return diag.Errorf("give access to the source, too: before the commit the source has the work",
				"%s has taken over nothing: the hand-over is not committed", r.target.Name)
		}
		return nil
	}
	if r.source.party.UID == r.target.party.UID {
		return diag.Usage("name another cluster as the target", "%s and %s are the same cluster", r.source.Name, r.target.Name)
	}
	for _, s := range []*side{r.source, r.target} {
		if j := s.journal; j.Active() && j.Detach {
			return BeingDetached(s.Name, j)
		}
		if j := s.journal; j.Active() && (j.Source.UID != r.source.party.UID || j.Target.UID != r.target.party.UID) {
			return InTheMiddle(s.Name, j)
		}
		if j := s.journal; j.Active() && j.Snapshot == "" && !slices.Equal(j.Select, r.selection()) {
			return InTheMiddle(s.Name, j)
		}
	}
	if s := r.source.journal; s.Active() && t.Active() && s.ID != t.ID {
		return diag.Errorf("look at the Secrets "+JournalKey.String()+" on both sides",
			"the journals of %s and %s are of two hand-overs, %s and %s", r.source.Name, r.target.Name, s.ID, t.ID)
	}
	return nil
}

// tookOver finds out whether the target has taken over, if the target's journal no longer names this hand-over. A run
// without the source may have finished this hand-over, and the target may have taken part in another one since. The
// owners of the target's Clusters then tell whether it has taken over. If it has, only the source's part is left to do.
func (r *run) tookOver(ctx context.Context) error {
	s, t := r.source.journal, r.target.journal
	if !s.Active() || s.Role != RoleSource || s.Detach || !s.Phase.reached(PhaseVerified) || t != nil && t.ID == s.ID {
		return nil
	}
	clusters, err := r.target.manager.Clusters(ctx)
	if err != nil {
		return err
	}
	for _, c := range clusters {
		if slices.Contains(s.Clusters, c.FullName()) && c.Owner.UID == r.target.party.UID && c.Owner.Epoch > s.Epoch {
			past := s.last()
			past.Role, past.Phase, past.Owner, past.Epoch = RoleTarget, PhaseReleased, r.target.party, c.Owner.Epoch
			r.target.journal, r.target.borrowed = past, true
			return nil
		}
	}
	return diag.Errorf("look at both sides: the Clusters of "+s.Target.Name+", and the Secret "+JournalKey.String()+" at each",
		"%s may have taken over from %s, but its journal does not say so any more", s.Target.Name, r.source.Name)
}

// InTheMiddle is the error for a management cluster in the middle of a hand-over. j is the journal of the management
// cluster of that name.
func InTheMiddle(name string, j *Journal) error {
	if j.Around {
		return BeingFenced(name, j)
	}
	hint := "first finish it (`" + j.Command() + "`)"
	if !j.Phase.Committed() {
		hint += " or undo it (`" + j.Command() + " --abort`)"
	}
	return diag.Errorf(hint,
		"%s is in the middle of %s, from %s to %s", name, j.what(), j.Source.Name, j.Target.Name)
}

// undoing tells whether an abort was cut off.
func (r *run) undoing() bool {
	return r.phaseOf(r.source) == PhaseAborting || r.phaseOf(r.target) == PhaseAborting
}

func (r *run) phaseOf(s *side) Phase {
	if s == nil || s.journal == nil {
		return ""
	}
	return s.journal.Phase
}

// committed tells whether the target has the work of the current hand-over.
func (r *run) committed() bool {
	j := r.target.journal
	if j == nil || r.past || j.Role != RoleTarget || !j.Phase.reached(PhaseCommitted) {
		return false
	}
	// If the target's journal is released, it is of this hand-over only if the source's journal has the same ID.
	return r.source == nil || r.source.journal != nil && r.source.journal.ID == j.ID
}

// finished tells whether both journals say that everything is done.
func (r *run) finished() bool {
	return r.committed() && r.target.journal.Phase == PhaseReleased && (r.source == nil || r.source.journal.Phase == PhaseReleased)
}

// journal returns the target's journal, or the source's if there is no target.
func (r *run) journal() *Journal {
	if r.target == nil {
		return r.source.journal
	}
	return r.target.journal
}

// act makes this run the one that works on the hand-over. It writes the run's ID into the journals, and impersonates a
// separate user from then on. This stops an earlier run that is still working: it can no longer write the journals, and
// once the fence names the new user, it cannot write anything else.
func (r *run) act(ctx context.Context) error {
	for _, s := range r.sides() {
		if s.journal == nil || s.borrowed {
			continue
		}
		next := *s.journal
		next.Runner, next.By = r.runner, r.by
		if err := s.put(ctx, &next); err != nil {
			return err
		}
	}
	return r.become()
}

// become makes the clients that impersonate the run's user.
func (r *run) become() error {
	for _, s := range r.sides() {
		if s.journal == nil {
			continue
		}
		var err error
		if s.as, err = s.Client.As(s.journal.user(), administrators); err != nil {
			return err
		}
		if s.manager, err = s.manager.As(s.as); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) sides() []*side {
	var there []*side
	for _, s := range []*side{r.source, r.target} {
		if s != nil {
			there = append(there, s)
		}
	}
	return there
}

// put writes the journal of one side, over the version that this run has read.
func (s *side) put(ctx context.Context, next *Journal) error {
	if next.version == "" { // the namespace may be missing, or deleted together with the journal
		if err := makeNamespace(ctx, s.Client); err != nil {
			return err
		}
	}
	err := next.write(ctx, s.Client)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return diag.Wrap("write the journal at "+s.Name, ErrOvertaken, diag.Hint(ErrOvertaken))
	}
	if err != nil {
		return err
	}
	s.journal = next
	return nil
}

// mark notes on both sides that the hand-over has reached a phase. If an earlier run has noted a later phase, mark
// leaves it.
func (r *run) mark(ctx context.Context, phase Phase) error {
	for _, s := range r.sides() {
		if s.journal.Phase.reached(phase) && s.journal.Phase != PhaseAborting {
			continue
		}
		next := *s.journal
		next.Phase = phase
		if err := s.put(ctx, &next); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) warn(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

// tell reports progress.
func (r *run) tell(phase Phase, detail string) {
	if r.Progress != nil {
		r.Progress(Progress{Phase: phase, Detail: detail})
	}
}

func (r *run) count(phase Phase, detail string) func(done, total int) {
	return func(done, total int) {
		if r.Progress != nil {
			r.Progress(Progress{Phase: phase, Detail: detail, Done: done, Total: total})
		}
	}
}

func (r *run) report() *Report {
	report := &Report{
		Source: r.Source.Name, Target: r.Target.Name, Moved: map[string]int{}, Clusters: []string{},
		Available: []string{}, Warnings: []string{},
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	report.Warnings = append(report.Warnings, r.warnings...)
	if j := r.journal(); j != nil {
		report.ID, report.Phase, report.Epoch = j.ID, j.Phase, j.Epoch
		report.Source, report.Target = cmp.Or(r.Source.Name, j.Source.Name), j.Target.Name
		maps.Copy(report.Moved, j.Moved)
		report.Clusters = append(report.Clusters, slices.Sorted(slices.Values(j.Clusters))...)
		report.Available = append(report.Available, j.Available...)
	}
	return report
}
