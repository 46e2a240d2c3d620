package handover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// tester finds out in dry runs what a side would refuse to the hand-over. Otherwise only the hand-over would find it,
// when both sides are fenced.
type tester struct {
	side       *side
	graph      *capi.Graph
	hold       bool
	operations []admissionv1.OperationType // what the hand-over does to objects of the graph's kinds at this side
	// as impersonates a user of the same name as the hand-over's, because a policy may depend on the user.
	as func() (*kube.Client, error)

	own, foreign []gate // of what is asked about some of the kinds: those that the hand-over puts aside, and the others
	namespaces   map[string]labels.Set
	resources    map[schema.GroupKind]request

	mu      sync.Mutex
	refused []error
	untried map[untried][]kube.Ref
}

// untried is what was not tried on some objects, and why.
type untried struct {
	operation admissionv1.OperationType
	why       string
}

// newTester returns a tester of what the hand-over does to the graph's objects at this side. It has sent no request.
func (s *side) newTester(graph *capi.Graph, operations ...admissionv1.OperationType) *tester {
	return &tester{
		side: s, graph: graph, operations: operations, resources: map[schema.GroupKind]request{}, untried: map[untried][]kube.Ref{},
		as: sync.OnceValues(func() (*kube.Client, error) {
			user := userPrefix + "probe"
			if s.journal.IsStandby() {
				user = s.journal.user() // the only one whom the fence of a standby admits
			}
			return s.Client.As(user, administrators)
		}),
	}
}

// prepare finds the gates that are asked about some of the graph's kinds, or about new namespaces.
func (t *tester) prepare(ctx context.Context) error {
	var kinds []request
	for _, gvk := range t.kinds() {
		mapping, err := t.side.Client.Mapping(ctx, gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			continue // unserved is an error of its own
		}
		if err != nil {
			return err
		}
		c := request{resource: mapping.Resource.GroupResource(), namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace}
		t.resources[gvk.GroupKind()] = c
		for _, c.operation = range t.operations {
			kinds = append(kinds, c)
		}
	}
	if slices.Contains(t.operations, admissionv1.Create) {
		kinds = append(kinds, request{operation: admissionv1.Create, resource: namespaceResource})
	}
	gates, err := t.gates(ctx, t.graph.Groups)
	if err != nil {
		return err
	}
	for _, g := range gates {
		switch {
		case !slices.ContainsFunc(kinds, g.covers):
		case g.aside:
			t.own = append(t.own, g)
		default:
			t.foreign = append(t.foreign, g)
		}
	}
	if len(t.foreign) == 0 {
		return nil
	}
	list := &corev1.NamespaceList{}
	if err := t.list(ctx, list); err != nil {
		return fmt.Errorf("list the namespaces of %s: %w", t.side.Name, err)
	}
	t.namespaces = map[string]labels.Set{}
	for i := range list.Items {
		t.namespaces[list.Items[i].Name] = list.Items[i].Labels
	}
	return nil
}

var namespaceResource = schema.GroupResource{Resource: "namespaces"}

// kinds returns the kinds of the objects that the hand-over creates at this side, or else of those that it deletes.
func (t *tester) kinds() []schema.GroupVersionKind {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, item := range t.graph.Kinds() {
		kinds[item.GroupVersionKind()] = true
	}
	if !slices.Contains(t.operations, admissionv1.Create) {
		for _, obj := range t.graph.Leave {
			kinds[obj.GroupVersionKind()] = true
		}
	}
	return slices.Collect(maps.Keys(kinds))
}

// unserved returns an error for each kind of the graph that the side does not serve.
func (s *side) unserved(ctx context.Context, graph *capi.Graph) ([]error, error) {
	var errs []error
	for _, item := range graph.Kinds() {
		gvk := item.GroupVersionKind()
		_, err := s.Client.Mapping(ctx, gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			errs = append(errs, fmt.Errorf("%s does not serve %s of %s, such as %s: install there what serves it", s.Name, gvk.Kind,
				gvk.GroupVersion(), item.Ref()))
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	return errs, nil
}

// list lists as the user of the kubeconfig, or, if that user may not, as the hand-over's.
func (t *tester) list(ctx context.Context, list kube.ObjectList) error {
	err := kube.Retry(ctx, func(ctx context.Context) error { return t.side.Client.List(ctx, list) })
	if !apierrors.IsForbidden(err) {
		return err
	}
	as, err := t.as()
	if err != nil {
		return err
	}
	return kube.Retry(ctx, func(ctx context.Context) error { return as.List(ctx, list) })
}

func (t *tester) requestOn(obj *unstructured.Unstructured, operation admissionv1.OperationType) request {
	c := t.resources[obj.GroupVersionKind().GroupKind()]
	c.operation, c.name, c.labels = operation, obj.GetName(), obj.GetLabels()
	if c.namespaced {
		c.namespace = t.namespaces[obj.GetNamespace()]
		if c.namespace == nil {
			c.namespace = labels.Set{corev1.LabelMetadataName: obj.GetNamespace()}
		}
	}
	return c
}

func (t *tester) asked(gates []gate, c request) []gate {
	var asked []gate
	for _, g := range gates {
		if g.asked(c) {
			asked = append(asked, g)
		}
	}
	return asked
}

// isDeaf tells whether one of the gates that are asked lets the API server refuse every dry run.
func (t *tester) isDeaf(gates []gate, c request, ref kube.Ref) bool {
	i := slices.IndexFunc(gates, func(g gate) bool { return g.deaf })
	if i >= 0 {
		t.skip(c, "the "+gates[i].String()+" takes no dry runs", ref)
	}
	return i >= 0
}

var verbs = map[admissionv1.OperationType]string{
	admissionv1.Create: "create", admissionv1.Update: "change", admissionv1.Delete: "delete",
}

// judge takes down what the error of a dry run says. It returns the error if it says nothing about the object.
func (t *tester) judge(ctx context.Context, ref kube.Ref, c request, err error) error {
	_, answered := errors.AsType[*apierrors.StatusError](err)
	switch {
	case err == nil || apierrors.IsAlreadyExists(err):
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case kube.IsAbsent(err) && c.operation != admissionv1.Create: // it is gone by now
		return nil
	case !answered || apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err):
		return fmt.Errorf("try to %s %s at %s: %w", verbs[c.operation], ref, t.side.Name, err)
	}
	// The API server has no other field that names the webhook. A name that is not found is no reason to pass the error over.
	if !slices.ContainsFunc(t.asked(t.foreign, c), func(g gate) bool { return g.isIn(err) }) {
		own := t.asked(t.own, c)
		if i := slices.IndexFunc(own, func(g gate) bool { return g.isIn(err) }); i >= 0 {
			t.skip(c, "the "+own[i].String()+", which the hand-over skips later, refuses it: "+err.Error(), ref)
			return nil
		}
	}
	t.refuse(fmt.Errorf("%s would refuse to %s %s: %w", t.side.Name, verbs[c.operation], ref, err))
	return nil
}

// isIn tells whether an error of the API server names the gate.
func (g *gate) isIn(err error) bool {
	name := g.name
	if name == "" {
		_, name, _ = strings.Cut(g.of, " ")
	}
	return strings.Contains(err.Error(), `"`+name+`"`) || strings.Contains(err.Error(), "'"+name+"'")
}

func (t *tester) refuse(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused = append(t.refused, err)
}

func (t *tester) skip(c request, why string, ref kube.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := untried{c.operation, why}
	t.untried[u] = append(t.untried[u], ref)
}

// notes says what was not tried, and why.
func (t *tester) notes() []string {
	notes := []string{}
	for u, refs := range t.untried {
		slices.SortFunc(refs, func(a, b kube.Ref) int { return cmp.Compare(a.String(), b.String()) })
		what := refs[0].String()
		if len(refs) > 1 {
			what += " and " + plain.Count(len(refs)-1, "other object")
		}
		notes = append(notes, fmt.Sprintf("whether %s lets the hand-over %s %s was not tried: %s", t.side.Name, verbs[u.operation], what, u.why))
	}
	slices.Sort(notes)
	return notes
}

// admitHint says what to do about a side that refuses something.
const admitHint = "change the policy or the webhook that says so, or exempt from it the users whose names begin with " + userPrefix

// errs returns what the side would refuse; not all of it, if it is much.
func (t *tester) errs() []error {
	const most = 5
	slices.SortFunc(t.refused, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	errs := slices.Clone(t.refused[:min(most, len(t.refused))])
	if more := len(t.refused) - most; more > 0 {
		errs = append(errs, fmt.Errorf("and %s", plain.Count(more, "other object")))
	}
	return errs
}

// refusal returns what the side would refuse, before anything was changed.
func (t *tester) refusal() error {
	return diag.Wrap("", errors.Join(t.errs()...), admitHint+"; nothing has been changed")
}
