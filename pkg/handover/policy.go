package handover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

const (
	// policyName is the name of the policy that denies the writes of everybody but the hand-over, and of its binding.
	policyName = "fleetctl-handover"
	// userPrefix begins the names of the users that hand-overs impersonate: prefix, hand-over, run.
	userPrefix = "fleetctl:handover:"
	// administrators is the group of the hand-over's user. It may do everything.
	administrators = "system:masters"
	// probeName is a ConfigMap that never exists. A dry run that creates it shows whose writes the policy denies. Nobody
	// else may refuse it.
	probeName = "fleetctl-handover-probe"
)

// user is the user that a run impersonates on both sides.
func (j *Journal) user() string { return userPrefix + j.ID + ":" + j.Runner }

// policy denies writes to the API groups that are handed over. At the source it covers all objects of these groups, or
// the objects in some namespaces. At the target it covers the copies.
type policy struct {
	user   string
	groups []string
	// namespaces that the policy covers. Nil: all namespaces, and cluster-scoped objects.
	namespaces []string
	// copies is the ID of the hand-over whose copies the policy covers; "": all objects.
	copies string
	// admit is a namespace whose service accounts may write too; "" for none.
	admit string
	// command continues the hand-over.
	command string
	// message is what a denied user reads; "" for a message about the command that continues the hand-over.
	message string
}

func (p policy) object() *admissionv1.ValidatingAdmissionPolicy {
	all := []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete}
	rule := func(groups, resources, names []string, operations ...admissionv1.OperationType) admissionv1.NamedRuleWithOperations {
		return admissionv1.NamedRuleWithOperations{
			ResourceNames: names,
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: operations,
				Rule:       admissionv1.Rule{APIGroups: groups, APIVersions: []string{"*"}, Resources: resources},
			},
		}
	}
	rules := []admissionv1.NamedRuleWithOperations{rule([]string{""}, []string{"configmaps"}, []string{probeName}, admissionv1.Create)}
	if p.copies != "" {
		rules = append(rules, rule([]string{""}, []string{"secrets", "configmaps"}, nil, admissionv1.Update, admissionv1.Delete))
	}
	if len(p.groups) > 0 {
		rules = append(rules, rule(p.groups, []string{"*/*"}, nil, all...))
	}
	conditions := []admissionv1.MatchCondition{{Name: "not-the-hand-over", Expression: fmt.Sprintf("request.userInfo.username != %q", p.user)}}
	if p.admit != "" {
		conditions = append(conditions, admissionv1.MatchCondition{Name: "not-admitted", Expression: "!(" + ofNamespace(p.admit) + ")"})
	}
	if about := p.about(); about != "" {
		conditions = append(conditions, admissionv1.MatchCondition{
			Name:       "handed-over",
			Expression: fmt.Sprintf("request.name == %q || (%s)", probeName, about),
		})
	}
	message := cmp.Or(p.message, "it is in the middle of a hand-over; `"+p.command+"` continues it, `"+p.command+" --abort` undoes it")
	fail, forbidden := admissionv1.Fail, metav1.StatusReasonForbidden
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: policyName, Labels: map[string]string{"app.kubernetes.io/managed-by": "fleetctl"}},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: rules},
			MatchConditions:  conditions,
			Validations: []admissionv1.Validation{{
				Expression: "false", Reason: &forbidden,
				Message: message,
			}},
		},
	}
}

// ofNamespace is the condition that a service account of that namespace makes the request.
func ofNamespace(namespace string) string {
	return fmt.Sprintf("%q in request.userInfo.groups", "system:serviceaccounts:"+namespace)
}

// about returns the condition by which the policy covers a request, as CEL; "" if it covers all requests.
func (p policy) about() string {
	switch {
	case p.copies != "":
		return fmt.Sprintf("oldObject != null && has(oldObject.metadata.annotations) && %q in oldObject.metadata.annotations && "+
			"oldObject.metadata.annotations[%q] == %q", capi.HandoverMark, capi.HandoverMark, p.copies)
	case p.namespaces != nil:
		quoted := make([]string, 0, len(p.namespaces))
		for _, n := range p.namespaces {
			quoted = append(quoted, fmt.Sprintf("%q", n))
		}
		return "request.namespace in [" + strings.Join(quoted, ", ") + "]"
	}
	return ""
}

func binding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policyName, Labels: map[string]string{"app.kubernetes.io/managed-by": "fleetctl"}},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policyName, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
}

// raise writes the policy, and replaces that of an earlier run. It returns once the API server denies the writes of
// everybody but the hand-over.
func (s *side) raise(ctx context.Context, p policy) error {
	if err := s.putPolicy(ctx, p); err != nil {
		return fmt.Errorf("fence %s: %w", s.Name, err)
	}
	if err := s.untilFenced(ctx); err != nil {
		return diag.Wrap("fence "+s.Name, err, "its API server must serve ValidatingAdmissionPolicies (Kubernetes 1.30), and nobody else may "+
			"refuse the ConfigMap "+probeName+" in the namespace "+JournalKey.Namespace)
	}
	return nil
}

// isFenced tells whether the policy of a hand-over exists.
func (s *side) isFenced(ctx context.Context) (bool, error) {
	have := &admissionv1.ValidatingAdmissionPolicy{}
	err := kube.Retry(ctx, func(ctx context.Context) error { return s.Client.Get(ctx, kube.Key{Name: policyName}, have) })
	if err != nil && !kube.IsAbsent(err) {
		return false, fmt.Errorf("look at the fence of %s: %w", s.Name, err)
	}
	return err == nil, nil
}

// isFencedAs tells whether exactly the policy p exists, with its binding. A denied write would not prove this: the
// policy in the API server may cover fewer groups, or may be deleted a moment ago and still be in force.
func (s *side) isFencedAs(ctx context.Context, p policy) (bool, error) {
	have := &admissionv1.ValidatingAdmissionPolicy{}
	err := kube.Retry(ctx, func(ctx context.Context) error {
		if err := s.Client.Get(ctx, kube.Key{Name: policyName}, have); err != nil {
			return err
		}
		return s.Client.Get(ctx, kube.Key{Name: policyName}, &admissionv1.ValidatingAdmissionPolicyBinding{})
	})
	if kube.IsAbsent(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the fence of %s: %w", s.Name, err)
	}
	return equality.Semantic.DeepDerivative(p.object().Spec, have.Spec), nil // the API server fills in the other fields
}

func (s *side) putPolicy(ctx context.Context, p policy) error {
	err := kube.Retry(ctx, func(ctx context.Context) error {
		have := &admissionv1.ValidatingAdmissionPolicy{}
		err := s.Client.Get(ctx, kube.Key{Name: policyName}, have)
		if kube.IsAbsent(err) {
			return again(s.Client.Create(ctx, p.object()))
		}
		if err != nil {
			return err
		}
		wanted := p.object()
		have.Spec = wanted.Spec
		return again(s.Client.Update(ctx, have))
	})
	if err != nil {
		return err
	}
	err = kube.Retry(ctx, func(ctx context.Context) error { return s.Client.Create(ctx, binding()) })
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// again turns a conflict with another writer into an error that kube.Retry retries.
func again(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return apierrors.NewServerTimeout(admissionv1.Resource("validatingadmissionpolicies"), "update", 0)
	}
	return err
}

// fenceTime bounds how long an API server may take until it enforces a policy. Most take less than a second.
const fenceTime = time.Minute

// untilFenced sends requests until the API server denies a write of the administrator and allows one of the hand-over.
// No watch tells whether an API server enforces a policy: only a request does. All requests are dry runs, so they create
// nothing.
func (s *side) untilFenced(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fenceTime)
	defer cancel()
	var last error
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if last = probe(ctx, s.Client); !denied(last) {
			return false, nil
		}
		last = probe(ctx, s.as)
		// Any other answer came from behind the policy.
		return !denied(last) && !silent(last), nil
	})
	if err != nil {
		return fmt.Errorf("the policy %s does not hold yet: %w", policyName, errors.Join(last, err))
	}
	return nil
}

// untilAdmitted sends requests until the API server allows the writes of the namespace's service accounts, or denies
// them if wanted is false. The user of the requests is also an administrator, so that only the policy can deny them.
func (s *side) untilAdmitted(ctx context.Context, namespace string, wanted bool) error {
	as, err := s.Client.As("system:serviceaccount:"+namespace+":"+probeName, "system:serviceaccounts:"+namespace, administrators)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, fenceTime)
	defer cancel()
	err = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true,
		func(ctx context.Context) (bool, error) { return denied(probe(ctx, as)) != wanted, nil })
	if err != nil {
		return fmt.Errorf("fence %s: its API server does not enforce the policy %s yet: %w", s.Name, policyName, err)
	}
	return nil
}

func probe(ctx context.Context, c *kube.Client) error {
	return c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: JournalKey.Namespace, Name: probeName}}, client.DryRunAll)
}

// denied tells whether the policy of a hand-over denied a request. Others may forbid it, too.
func denied(err error) bool {
	fence := gate{of: "ValidatingAdmissionPolicy " + policyName}
	return apierrors.IsForbidden(err) && fence.isIn(err)
}

// silent tells whether an error is no answer to a request.
func silent(err error) bool {
	_, answered := errors.AsType[*apierrors.StatusError](err)
	return err != nil && (!answered || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsInternalError(err))
}

// opened creates the namespace of the journal, before the first journal is written, and is probed then.
func (s *side) opened(ctx context.Context) error {
	if err := makeNamespace(ctx, s.Client); err != nil {
		return err
	}
	return s.probed(ctx)
}

// probed returns an error if something else than a fence refuses the probe to the user of the kubeconfig, or to the
// hand-over's. Then no request would tell whether a fence holds. A namespace that does not exist yet tells nothing.
func (s *side) probed(ctx context.Context) error {
	as, err := s.Client.As(userPrefix+"probe", administrators)
	if err != nil {
		return err
	}
	for _, c := range []*kube.Client{s.Client, as} {
		err := kube.Retry(ctx, func(ctx context.Context) error { return probe(ctx, c) })
		switch {
		case err == nil || denied(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err):
		case silent(err):
			return fmt.Errorf("try to create the ConfigMap %s at %s: %w", probeName, s.Name, err)
		default:
			return fmt.Errorf("%s would refuse the ConfigMap %s, with which a hand-over finds out whether its fence holds; exempt the "+
				"namespace %s from what refuses it: %w", s.Name, probeName, JournalKey.Namespace, err)
		}
	}
	return nil
}

// lower deletes the policy, and returns once the API server no longer denies writes.
func (s *side) lower(ctx context.Context) error {
	err := kube.Retry(ctx, func(ctx context.Context) error {
		b := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policyName}}
		if err := s.Client.WithWatch.Delete(ctx, b); err != nil && !kube.IsAbsent(err) {
			return err
		}
		p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyName}}
		return s.Client.WithWatch.Delete(ctx, p)
	})
	if err != nil && !kube.IsAbsent(err) {
		return fmt.Errorf("take the fence of %s down: %w", s.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, fenceTime)
	defer cancel()
	err = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true,
		func(ctx context.Context) (bool, error) { return !denied(probe(ctx, s.Client)), nil })
	if err != nil {
		return fmt.Errorf("take the fence of %s down: the API server still denies writes: %w", s.Name, err)
	}
	return nil
}
