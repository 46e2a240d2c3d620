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

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// tester finds out in dry runs what the target would refuse to create. Otherwise only the copy would find it, when both
// sides are fenced.
type tester struct {
	side  *side
	graph *capi.Graph
	hold  bool
	// as impersonates a user of the same name as the hand-over's, because a policy may depend on the user.
	as func() (*kube.Client, error)

	own, foreign []gate // of what is asked about some of the kinds: those that the hand-over puts aside, and the others
	namespaces   map[string]labels.Set
	resources    map[schema.GroupKind]creation

	mu      sync.Mutex
	refused []error
	untried map[string][]kube.Ref // by reason
}

// newTester returns a tester of what the graph's objects meet at a target. It has sent no request.
func (s *side) newTester(graph *capi.Graph, hold bool) *tester {
	return &tester{
		side: s, graph: graph, hold: hold, resources: map[schema.GroupKind]creation{}, untried: map[string][]kube.Ref{},
		as: sync.OnceValues(func() (*kube.Client, error) {
			user := userPrefix + "probe"
			if s.journal.IsStandby() {
				user = s.journal.user() // the only one whom the fence of a standby admits
			}
			return s.Client.As(user, administrators)
		}),
	}
}

// run tries to create what the target lacks. It creates nothing. later are the objects whose namespace does not exist at
// the target: no dry run creates them before it exists.
func (t *tester) run(ctx context.Context) (later []*capi.Item, err error) {
	if err := t.prepare(ctx); err != nil {
		return nil, err
	}
	quotas, err := t.quotas(ctx)
	if err != nil || len(t.foreign) == 0 && len(quotas) == 0 {
		return nil, err
	}
	arriving, err := t.side.manager.Arriving(ctx, t.graph, func(kind schema.GroupKind) bool {
		return t.isGuarded(kind) || slices.ContainsFunc(quotas, func(q corev1.ResourceQuota) bool { return len(t.limits(&q, kind)) > 0 })
	})
	if err != nil {
		return nil, err
	}
	t.count(quotas, arriving)
	arriving = slices.DeleteFunc(arriving, func(i *capi.Item) bool { return !t.isGuarded(i.GroupVersionKind().GroupKind()) })
	return t.items(ctx, arriving)
}

// prepare finds the gates that are asked about some of the graph's kinds, or about its namespaces.
func (t *tester) prepare(ctx context.Context) error {
	var kinds []creation
	for _, item := range t.graph.Kinds() {
		gvk := item.GroupVersionKind()
		mapping, err := t.side.Client.Mapping(ctx, gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			continue // the target lacks the provider, which is an error of its own
		}
		if err != nil {
			return err
		}
		c := creation{resource: mapping.Resource.GroupResource(), namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace}
		t.resources[gvk.GroupKind()] = c
		kinds = append(kinds, c)
	}
	kinds = append(kinds, creation{resource: namespaceResource})
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

// isGuarded tells whether a gate that the hand-over does not put aside is asked about objects of a kind.
func (t *tester) isGuarded(kind schema.GroupKind) bool {
	c, known := t.resources[kind]
	return known && slices.ContainsFunc(t.foreign, func(g gate) bool { return g.covers(c) })
}

// items tries to create items, and the namespaces that the target lacks. It returns the items that a gate is asked about
// in these namespaces.
func (t *tester) items(ctx context.Context, items []*capi.Item) (later []*capi.Item, err error) {
	if err := t.missing(ctx); err != nil {
		return nil, err
	}
	var now []*capi.Item
	for _, item := range items {
		switch asked := t.asked(t.foreign, t.creationOf(item)); {
		case len(asked) == 0:
		case t.lacks(item.GetNamespace()):
			later = append(later, item)
		default:
			now = append(now, item)
		}
	}
	return later, t.each(ctx, now)
}

func (t *tester) each(ctx context.Context, items []*capi.Item) error {
	return kube.Each(webhookProbes, items, func(item *capi.Item) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return t.one(ctx, item)
	})
}

func (t *tester) lacks(namespace string) bool {
	return namespace != "" && t.namespaces[namespace] == nil
}

func (t *tester) creationOf(item *capi.Item) creation {
	c := t.resources[item.GroupVersionKind().GroupKind()]
	c.name, c.labels = item.GetName(), item.GetLabels()
	if c.namespaced {
		c.namespace = t.namespaces[item.GetNamespace()]
		if c.namespace == nil {
			c.namespace = labels.Set{corev1.LabelMetadataName: item.GetNamespace()}
		}
	}
	return c
}

func (t *tester) asked(gates []gate, c creation) []gate {
	var asked []gate
	for _, g := range gates {
		if g.asked(c) {
			asked = append(asked, g)
		}
	}
	return asked
}

// missing tries to create the namespaces that the target lacks.
func (t *tester) missing(ctx context.Context) error {
	for _, name := range t.newNamespaces(t.graph.Items) {
		c := creation{resource: namespaceResource, name: name}
		c.labels = labels.Set{corev1.LabelMetadataName: name}
		c.namespace = c.labels
		asked := t.asked(t.foreign, c)
		if len(asked) == 0 {
			continue
		}
		ref := kube.Ref{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), Key: kube.Key{Name: name}}
		if t.isDeaf(asked, ref) {
			continue
		}
		as, err := t.as()
		if err != nil {
			return err
		}
		err = kube.Retry(ctx, func(ctx context.Context) error { return as.Create(ctx, namespaceOf(name), client.DryRunAll) })
		if err := t.judge(ctx, ref, c, err); err != nil {
			return err
		}
	}
	return nil
}

func namespaceOf(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// newNamespaces returns the namespaces of items that the target lacks.
func (t *tester) newNamespaces(items []*capi.Item) []string {
	names := map[string]bool{}
	for _, item := range items {
		if t.lacks(item.GetNamespace()) {
			names[item.GetNamespace()] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// one tries to create the copy of an item.
func (t *tester) one(ctx context.Context, item *capi.Item) error {
	c, ref := t.creationOf(item), item.Ref()
	own, foreign := t.asked(t.own, c), t.asked(t.foreign, c)
	if t.isDeaf(slices.Concat(foreign, own), ref) {
		return nil
	}
	if t.side.journal.IsStandby() && len(own) > 0 {
		t.skip("the providers of a standby do not run, so their webhooks do not answer", ref)
		return nil
	}
	as, err := t.as()
	if err != nil {
		return err
	}
	made := item.Trial(t.hold)
	err = kube.Retry(ctx, func(ctx context.Context) error { return as.Create(ctx, made, client.DryRunAll) })
	if err != nil {
		return t.judge(ctx, ref, c, err)
	}
	at := item.Altered(made)
	if at == "" {
		return nil
	}
	isAltering := func(g gate) bool { return g.alters }
	if slices.ContainsFunc(own, isAltering) { // the target's provider may be newer
		t.skip("it would be changed in "+at+", which the webhook of its own provider may do", ref)
		return nil
	}
	by := ""
	if i := slices.IndexFunc(foreign, isAltering); i >= 0 {
		by = " (" + foreign[i].String() + " is asked about it)"
	}
	t.refuse(fmt.Errorf("%s would change %s in %s%s: both sides would not be equal", t.side.Name, ref, at, by))
	return nil
}

// isDeaf tells whether one of the gates lets the API server refuse every dry run.
func (t *tester) isDeaf(gates []gate, ref kube.Ref) bool {
	i := slices.IndexFunc(gates, func(g gate) bool { return g.deaf })
	if i >= 0 {
		t.skip("the "+gates[i].String()+" takes no dry runs", ref)
	}
	return i >= 0
}

// judge takes down what the error of a dry run says. It returns the error if it says nothing about the object.
func (t *tester) judge(ctx context.Context, ref kube.Ref, c creation, err error) error {
	_, answered := errors.AsType[*apierrors.StatusError](err)
	switch {
	case err == nil || apierrors.IsAlreadyExists(err):
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !answered || apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err):
		return fmt.Errorf("try to create %s at %s: %w", ref, t.side.Name, err)
	}
	// The API server has no other field that names the webhook. A name that is not found is no reason to pass the error over.
	if !slices.ContainsFunc(t.asked(t.foreign, c), func(g gate) bool { return g.isIn(err) }) {
		own := t.asked(t.own, c)
		if i := slices.IndexFunc(own, func(g gate) bool { return g.isIn(err) }); i >= 0 {
			t.skip("the "+own[i].String()+", which the hand-over skips later, refuses it: "+err.Error(), ref)
			return nil
		}
	}
	t.refuse(fmt.Errorf("%s would refuse %s: %w", t.side.Name, ref, err))
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

func (t *tester) skip(why string, ref kube.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.untried[why] = append(t.untried[why], ref)
}

// notes says what was not tried, and why.
func (t *tester) notes() []string {
	notes := []string{}
	for _, why := range slices.Sorted(maps.Keys(t.untried)) {
		refs := t.untried[why]
		slices.SortFunc(refs, func(a, b kube.Ref) int { return cmp.Compare(a.String(), b.String()) })
		what := refs[0].String()
		if len(refs) > 1 {
			what += " and " + plain.Count(len(refs)-1, "other object")
		}
		notes = append(notes, fmt.Sprintf("whether %s takes %s was not tried: %s", t.side.Name, what, why))
	}
	return notes
}

// admitHint says what to do about a target that refuses objects.
const admitHint = "change the policy or the webhook that says so, or exempt from it the users whose names begin with " + userPrefix

// errs returns what the target would refuse; not all of it, if it is much.
func (t *tester) errs() []error {
	const most = 5
	slices.SortFunc(t.refused, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	errs := slices.Clone(t.refused[:min(most, len(t.refused))])
	if more := len(t.refused) - most; more > 0 {
		errs = append(errs, fmt.Errorf("and %s", plain.Count(more, "other object")))
	}
	return errs
}

// into creates the namespaces that items need at the target, and tries the items in them. The copy would create the
// namespaces as well.
func (t *tester) into(ctx context.Context, items []*capi.Item) error {
	if len(items) == 0 {
		return nil
	}
	as, err := t.as()
	if err != nil {
		return err
	}
	names := t.newNamespaces(items)
	for _, name := range names {
		made := namespaceOf(name)
		err := kube.Retry(ctx, func(ctx context.Context) error { return as.Create(ctx, made) })
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create the namespace %s at %s: %w", name, t.side.Name, err)
		}
		t.namespaces[name] = made.Labels
		if made.Labels == nil {
			t.namespaces[name] = labels.Set{}
		}
	}
	if err := t.each(ctx, items); err != nil {
		return err
	}
	return diag.Wrap("", errors.Join(t.errs()...), admitHint+"; of the hand-over, "+t.side.Name+
		" has only the empty "+namespacesText(names)+", and nothing else has been changed")
}

func namespacesText(names []string) string {
	if len(names) == 1 {
		return "namespace " + names[0]
	}
	return "namespaces " + strings.Join(names, ", ")
}
