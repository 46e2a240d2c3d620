package handover

import (
	"context"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// admission is the API group of policies and webhooks.
const admission = "admissionregistration.k8s.io"

// needed returns the permissions that the user of the kubeconfig needs on a side. The first two let the hand-over
// impersonate an administrator, who does everything else.
func needed() []authorizationv1.ResourceAttributes {
	return []authorizationv1.ResourceAttributes{
		{Verb: "impersonate", Resource: "users"},
		{Verb: "impersonate", Resource: "groups", Name: administrators},
		{Verb: "create", Group: admission, Resource: "validatingadmissionpolicies"},
		{Verb: "update", Group: admission, Resource: "validatingwebhookconfigurations"},
		{Verb: "patch", Group: "apps", Resource: "deployments"},
		{Verb: "create", Resource: "secrets", Namespace: JournalKey.Namespace},
	}
}

// ready returns an error that names everything that a side lacks for a hand-over. Without this check, the hand-over
// would fail when the side is half fenced.
func (s *side) ready(ctx context.Context) error {
	var errs []error
	policies := schema.GroupKind{Group: admission, Kind: "ValidatingAdmissionPolicy"}
	if _, err := s.Client.Mapping(ctx, policies, "v1"); meta.IsNoMatchError(err) {
		errs = append(errs, diag.Errorf("upgrade its Kubernetes first",
			"the API server of %s serves no ValidatingAdmissionPolicies (Kubernetes 1.30), with which a hand-over denies other writes", s.Name))
	}
	if _, err := s.Client.As(userPrefix+"probe", administrators); err != nil {
		return errors.Join(append(errs, err)...)
	}
	for _, right := range needed() {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
		if err := kube.Retry(ctx, func(ctx context.Context) error { return s.Client.Create(ctx, review) }); err != nil {
			return fmt.Errorf("ask %s what its user may do: %w", s.Name, err)
		}
		if !review.Status.Allowed {
			errs = append(errs, diag.Errorf("give a kubeconfig of an administrator",
				"the user of the kubeconfig may not %s %s at %s", right.Verb, right.Resource, s.Name))
		}
	}
	return errors.Join(errs...)
}
