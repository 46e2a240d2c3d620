package handover

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// gate is a webhook or an admission policy. It may refuse or change what is asked of the API server.
type gate struct {
	// name is as the API server's errors have it, and of is the kind and the name of the object that configures it.
	name, of string
	// aside means that the hand-over skips it: it is a webhook that bypass puts aside.
	aside bool
	// alters means that it may change objects. deaf means that the API server refuses a dry run because of it.
	alters, deaf bool
	// needs are what a request has to match, all of them.
	needs []criterion
}

// criterion selects requests.
type criterion struct {
	rules, except       []admissionv1.NamedRuleWithOperations
	namespaces, objects *metav1.LabelSelector
}

// request is what a gate is asked about.
type request struct {
	operation  admissionv1.OperationType
	resource   schema.GroupResource
	namespaced bool
	name       string
	// labels are those of the object, and namespace those of its namespace; of a Namespace, both are its own.
	labels, namespace labels.Set
}

func (g *gate) String() string {
	if g.name == "" {
		return g.of
	}
	return "webhook " + g.name + " of " + g.of
}

// covers tells whether the gate is asked about the operation on some objects of a resource.
func (g *gate) covers(c request) bool {
	return !slices.ContainsFunc(g.needs, func(n criterion) bool { return !n.covers(c) })
}

// asked tells whether the gate is asked about a request. It ignores match conditions.
func (g *gate) asked(c request) bool {
	return g.covers(c) && !slices.ContainsFunc(g.needs, func(n criterion) bool { return !n.selects(c) })
}

func (n *criterion) covers(c request) bool {
	return len(n.rules) == 0 || slices.ContainsFunc(n.rules, func(r admissionv1.NamedRuleWithOperations) bool { return ruleOn(&r, c) })
}

func (n *criterion) selects(c request) bool {
	if slices.ContainsFunc(n.except, func(r admissionv1.NamedRuleWithOperations) bool { return ruleOn(&r, c) && named(&r, c) }) {
		return false
	}
	if len(n.rules) > 0 &&
		!slices.ContainsFunc(n.rules, func(r admissionv1.NamedRuleWithOperations) bool { return ruleOn(&r, c) && named(&r, c) }) {
		return false
	}
	return selected(n.objects, c.labels) && (c.namespace == nil || selected(n.namespaces, c.namespace))
}

// ruleOn tells whether a rule is about the operation on objects of a resource. It ignores versions: the API server also
// asks about other versions of the rule's resource, unless the rule forbids it.
func ruleOn(r *admissionv1.NamedRuleWithOperations, c request) bool {
	scope := admissionv1.ClusterScope
	if c.namespaced {
		scope = admissionv1.NamespacedScope
	}
	return anyOf(r.Operations, c.operation) && anyOf(r.APIGroups, c.resource.Group) &&
		(r.Scope == nil || *r.Scope == admissionv1.AllScopes || *r.Scope == scope) &&
		slices.ContainsFunc(r.Resources, func(name string) bool {
			resource, sub, _ := strings.Cut(name, "/")
			return (resource == "*" || resource == c.resource.Resource) && (sub == "" || sub == "*")
		})
}

// anyOf tells whether list has value, or "*" for all values.
func anyOf[T ~string](list []T, value T) bool {
	return slices.Contains(list, value) || slices.Contains(list, "*")
}

func named(r *admissionv1.NamedRuleWithOperations, c request) bool {
	return len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, c.name)
}

// selected tells whether a selector selects labels. A selector that cannot be read selects all: then one dry run too
// many is made.
func selected(selector *metav1.LabelSelector, of labels.Set) bool {
	if selector == nil {
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err != nil || s.Matches(of)
}

// gates returns all gates of the side, with those that a hand-over of groups puts aside.
func (t *tester) gates(ctx context.Context, groups []string) ([]gate, error) {
	var found [4][]gate
	all, listCtx := errgroup.WithContext(ctx)
	for i, of := range t.side.configurations() {
		all.Go(func() (err error) { found[i], err = t.side.webhookGates(listCtx, of, groups); return err })
	}
	all.Go(func() (err error) { found[2], err = t.denying(listCtx); return err })
	all.Go(func() (err error) { found[3], err = t.altering(listCtx); return err })
	if err := all.Wait(); err != nil {
		return nil, fmt.Errorf("list the webhooks and admission policies of %s: %w", t.side.Name, err)
	}
	return slices.Concat(found[:]...), nil
}

func (s *side) webhookGates(ctx context.Context, of configurations, groups []string) ([]gate, error) {
	aside := s.aside(groups)
	var all []configuration
	err := kube.Retry(ctx, func(ctx context.Context) (err error) { all, err = of.list(ctx); return err })
	if err != nil {
		return nil, err
	}
	var gates []gate
	for _, c := range all {
		for i := range c.webhooks {
			w := &c.webhooks[i]
			g := w.gate(of.kind+" "+c.GetName(), of.alters)
			if g.aside, err = aside(ctx, w); err != nil {
				return nil, err
			}
			gates = append(gates, g)
		}
	}
	return gates, nil
}

func (w *webhook) gate(of string, alters bool) gate {
	n := criterion{namespaces: w.namespaces, objects: w.objects, rules: make([]admissionv1.NamedRuleWithOperations, 0, len(w.rules))}
	for _, r := range w.rules {
		n.rules = append(n.rules, admissionv1.NamedRuleWithOperations{RuleWithOperations: r})
	}
	if len(w.rules) == 0 { // a webhook without rules is never asked, and a criterion without rules takes everything
		n.rules = append(n.rules, admissionv1.NamedRuleWithOperations{})
	}
	none := w.effects != nil && (*w.effects == admissionv1.SideEffectClassNone || *w.effects == admissionv1.SideEffectClassNoneOnDryRun)
	return gate{name: w.name, of: of, alters: alters, deaf: !none, needs: []criterion{n}}
}

func criterionOf(m *admissionv1.MatchResources) criterion {
	if m == nil {
		return criterion{}
	}
	return criterion{rules: m.ResourceRules, except: m.ExcludeResourceRules, namespaces: m.NamespaceSelector, objects: m.ObjectSelector}
}

// denying returns the gates of the ValidatingAdmissionPolicies, without the fence of a hand-over. A policy without a
// binding that denies is no gate.
func (t *tester) denying(ctx context.Context) ([]gate, error) {
	policies, bindings := &admissionv1.ValidatingAdmissionPolicyList{}, &admissionv1.ValidatingAdmissionPolicyBindingList{}
	if err := t.listBoth(ctx, policies, bindings); err != nil {
		return nil, err
	}
	var gates []gate
	for i := range bindings.Items {
		b := &bindings.Items[i].Spec
		at := slices.IndexFunc(policies.Items, func(p admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == b.PolicyName })
		if at < 0 || b.PolicyName == policyName || !slices.Contains(b.ValidationActions, admissionv1.Deny) {
			continue
		}
		gates = append(gates, gate{
			of:    "ValidatingAdmissionPolicy " + b.PolicyName,
			needs: []criterion{criterionOf(policies.Items[at].Spec.MatchConstraints), criterionOf(b.MatchResources)},
		})
	}
	return gates, nil
}

// altering returns the gates of the MutatingAdmissionPolicies, which not every API server serves.
func (t *tester) altering(ctx context.Context) ([]gate, error) {
	policies, bindings := &admissionv1.MutatingAdmissionPolicyList{}, &admissionv1.MutatingAdmissionPolicyBindingList{}
	if err := t.listBoth(ctx, policies, bindings); err != nil {
		return nil, err
	}
	var gates []gate
	for i := range bindings.Items {
		b := &bindings.Items[i].Spec
		at := slices.IndexFunc(policies.Items, func(p admissionv1.MutatingAdmissionPolicy) bool { return p.Name == b.PolicyName })
		if at < 0 {
			continue
		}
		gates = append(gates, gate{
			of: "MutatingAdmissionPolicy " + b.PolicyName, alters: true,
			needs: []criterion{criterionOf(policies.Items[at].Spec.MatchConstraints), criterionOf(b.MatchResources)},
		})
	}
	return gates, nil
}

// listBoth lists policies and their bindings. Of a kind that the API server does not serve there are none.
func (t *tester) listBoth(ctx context.Context, lists ...kube.ObjectList) error {
	for _, list := range lists {
		if err := t.list(ctx, list); err != nil && !kube.IsAbsent(err) {
			return err
		}
	}
	return nil
}
