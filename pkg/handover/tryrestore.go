package handover

import (
	"context"
	"errors"
	"fmt"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// LookRestore finds out whether Restore could begin, and changes nothing. The error is Restore's. The notes say what no
// dry run can tell. If the target's journal names this restore, LookRestore has nothing to say.
func LookRestore(ctx context.Context, o RestoreOptions) (notes []string, err error) {
	r := newRun(o.hand())
	if r.target, err = openSide(ctx, o.Target); err != nil {
		return nil, err
	}
	if j := r.target.journal; j != nil && j.Snapshot == o.Snapshot && !j.IsStandby() {
		return nil, nil
	}
	if !r.target.journal.IsStandby() {
		if err := Restorable(r.target.Name, r.target.journal); err != nil {
			return nil, err
		}
	}
	graph, err := r.target.manager.GraphOf(ctx, o.Objects)
	if err != nil {
		untried := "whether " + r.target.Name + " takes the objects was not tried: " + err.Error()
		return []string{untried}, nil //nolint:nilerr // a restore installs the providers first
	}
	try, err := r.tryRestore(ctx, graph)
	if err != nil {
		return nil, err
	}
	return try.notes(), nil
}

// restoreTry is what the dry runs of a restore have found.
type restoreTry struct {
	taker *tester
	later []*capi.Item // what is tried once the target has its namespaces
}

func (t *restoreTry) notes() []string {
	notes := t.taker.notes()
	if names := t.taker.newNamespaces(t.later); len(names) > 0 {
		notes = append(notes, laterNote(t.taker.side.Name, names))
	}
	return notes
}

// laterNote says that objects are tried once their namespaces exist.
func laterNote(side string, namespaces []string) string {
	return fmt.Sprintf("whether %s takes the objects of the %s was not tried: the hand-over tries it, before it fences, once they exist",
		side, namespacesText(namespaces))
}

// tryRestore finds out what the target would refuse of a restore. A rehearsal makes no dry runs, because it is undone.
func (r *run) tryRestore(ctx context.Context, graph *capi.Graph) (*restoreTry, error) {
	clusters, err := r.target.manager.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	taken, _, err := r.target.manager.Conflicts(ctx, graph, "")
	if err != nil {
		return nil, err
	}
	if err := inTheWay(r.target.Name, taken); err != nil {
		return nil, err
	}
	try := &restoreTry{taker: r.target.newTaker(graph, len(clusters) > 0)}
	err = r.target.ready(ctx)
	if err == nil && !r.tries {
		if try.later, err = try.taker.run(ctx); err == nil {
			err = try.taker.refusal()
		}
	}
	return try, diag.Wrap("restore into "+r.target.Name, err, "")
}

// makeReady creates the namespace of the journal and those that the restore needs, tries the objects in them, and warns
// of what was not tried.
func (r *run) makeReady(ctx context.Context, try *restoreTry) error {
	if err := r.target.opened(ctx); err != nil {
		return err
	}
	if err := try.taker.into(ctx, try.later); err != nil {
		return err
	}
	for _, note := range try.taker.notes() {
		r.warn("%s", note)
	}
	return nil
}

// inTheWay returns an error that names the objects in taken. They are objects of the snapshot that already exist at the
// target, and a restore would overwrite them.
func inTheWay[T fmt.Stringer](target string, taken []T) error {
	if len(taken) == 0 {
		return nil
	}
	const most = 5
	var errs []error
	for _, ref := range taken[:min(most, len(taken))] {
		errs = append(errs, fmt.Errorf("%s exists already", ref))
	}
	if len(taken) > most {
		errs = append(errs, fmt.Errorf("and %d more", len(taken)-most))
	}
	return diag.Wrap("restore into "+target, errors.Join(errs...),
		"restore into a management cluster without these objects (run `fleetctl teardown` first, or give another --management); "+
			"nothing has been changed")
}
