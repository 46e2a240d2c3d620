package handover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// newTaker returns a tester of what the target says when the copies of the graph's objects arrive. hold is as in
// capi.CopyOptions.
func (s *side) newTaker(graph *capi.Graph, hold bool) *tester {
	t := s.newTester(graph, admissionv1.Create, admissionv1.Update, admissionv1.Delete)
	t.hold = hold
	return t
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

// isGuarded tells whether a gate that the hand-over does not put aside is asked about objects of a kind.
func (t *tester) isGuarded(kind schema.GroupKind) bool {
	c, known := t.resources[kind]
	return known && slices.ContainsFunc(t.operations, func(o admissionv1.OperationType) bool {
		c.operation = o
		return slices.ContainsFunc(t.foreign, func(g gate) bool { return g.covers(c) })
	})
}

// items tries to create items, and the namespaces that the target lacks. It returns the items that a gate is asked about
// in these namespaces.
func (t *tester) items(ctx context.Context, items []*capi.Item) (later []*capi.Item, err error) {
	if err := t.missing(ctx); err != nil {
		return nil, err
	}
	var now []*capi.Item
	for _, item := range items {
		t.skipChanges(item)
		switch asked := t.asked(t.foreign, t.requestOn(item.Unstructured, admissionv1.Create)); {
		case len(asked) == 0:
		case t.lacks(item.GetNamespace()):
			later = append(later, item)
		default:
			now = append(now, item)
		}
	}
	return later, t.each(ctx, now)
}

// skipChanges notes the gates that are asked about changes or deletions of an item, and not about its creation. The copy
// creates an item first and then adds its owners, an abort deletes it, and no dry run does that to what does not exist.
func (t *tester) skipChanges(item *capi.Item) {
	create := t.requestOn(item.Unstructured, admissionv1.Create)
	for _, o := range []admissionv1.OperationType{admissionv1.Update, admissionv1.Delete} {
		c := create
		c.operation = o
		for _, g := range t.asked(t.foreign, c) {
			if !g.asked(create) {
				t.skip(c, "the "+g.String()+" is not asked about creations, and a dry run needs an object that exists", item.Ref())
			}
		}
	}
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

// missing tries to create the namespaces that the target lacks.
func (t *tester) missing(ctx context.Context) error {
	for _, name := range t.newNamespaces(t.graph.Items) {
		c := request{operation: admissionv1.Create, resource: namespaceResource, name: name}
		c.labels = labels.Set{corev1.LabelMetadataName: name}
		c.namespace = c.labels
		asked := t.asked(t.foreign, c)
		if len(asked) == 0 {
			continue
		}
		ref := kube.Ref{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), Key: kube.Key{Name: name}}
		if t.isDeaf(asked, c, ref) {
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
	c, ref := t.requestOn(item.Unstructured, admissionv1.Create), item.Ref()
	own, foreign := t.asked(t.own, c), t.asked(t.foreign, c)
	if t.isDeaf(slices.Concat(foreign, own), c, ref) {
		return nil
	}
	if t.side.journal.IsStandby() && len(own) > 0 {
		t.skip(c, "the providers of a standby do not run, so their webhooks do not answer", ref)
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
		t.skip(c, "it would be changed in "+at+", which the webhook of its own provider may do", ref)
		return nil
	}
	by := ""
	if i := slices.IndexFunc(foreign, isAltering); i >= 0 {
		by = " (" + foreign[i].String() + " is asked about it)"
	}
	t.refuse(fmt.Errorf("%s would change %s in %s%s: both sides would not be equal", t.side.Name, ref, at, by))
	return nil
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
