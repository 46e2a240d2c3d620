package handover

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// admission is the API group of policies and webhooks.
const admission = "admissionregistration.k8s.io"

// needed returns the permissions that the user of the kubeconfig needs on a side. The first two let the hand-over
// impersonate an administrator, who does the rest. The user itself writes the journal, stops the controllers, and puts up
// and takes down the fence: a user who may put it up and not take it down would leave a fenced side behind. With the
// right to create ConfigMaps, only the fence can deny the probe that shows whether it holds.
func needed() []authorizationv1.ResourceAttributes {
	rights := []authorizationv1.ResourceAttributes{
		{Verb: "impersonate", Resource: "users"},
		{Verb: "impersonate", Resource: "groups", Name: administrators},
		{Verb: "create", Resource: "namespaces"},
		{Verb: "create", Resource: "configmaps", Namespace: JournalKey.Namespace},
		{Verb: "list", Resource: "pods"},
		{Verb: "watch", Resource: "pods"},
	}
	for _, of := range []struct {
		group, resource, namespace string
		verbs                      []string
	}{
		{"", "secrets", JournalKey.Namespace, []string{"get", "create", "update", "delete"}},
		{admission, "validatingadmissionpolicies", "", []string{"get", "create", "update", "delete"}},
		{admission, "validatingadmissionpolicybindings", "", []string{"get", "create", "delete"}},
		{admission, "validatingwebhookconfigurations", "", []string{"list", "update"}},
		{admission, "mutatingwebhookconfigurations", "", []string{"list", "update"}},
		{"apps", "deployments", "", []string{"list", "watch", "patch"}},
	} {
		for _, verb := range of.verbs {
			rights = append(rights, authorizationv1.ResourceAttributes{
				Verb: verb, Group: of.group, Resource: of.resource, Namespace: of.namespace,
			})
		}
	}
	return rights
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
	reviews, err := s.reviewed(ctx, needed())
	if err != nil {
		return fmt.Errorf("ask %s what its user may do: %w", s.Name, err)
	}
	var resources []string
	lacks := map[string][]string{} // verbs by resource
	for _, review := range reviews {
		if review.Status.Allowed {
			continue
		}
		right := review.Spec.ResourceAttributes
		if lacks[right.Resource] == nil {
			resources = append(resources, right.Resource)
		}
		lacks[right.Resource] = append(lacks[right.Resource], right.Verb)
	}
	for _, resource := range resources {
		errs = append(errs, diag.Errorf("give a kubeconfig of an administrator",
			"the user of the kubeconfig may not %s %s at %s", strings.Join(lacks[resource], ", "), resource, s.Name))
	}
	if len(errs) == 0 {
		return s.probed(ctx)
	}
	return errors.Join(errs...)
}

// reviewed asks the API server for each right whether the user of the kubeconfig has it.
func (s *side) reviewed(
	ctx context.Context, rights []authorizationv1.ResourceAttributes,
) ([]*authorizationv1.SelfSubjectAccessReview, error) {
	reviews := make([]*authorizationv1.SelfSubjectAccessReview, 0, len(rights))
	for i := range rights {
		reviews = append(reviews, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &rights[i]},
		})
	}
	asked, askCtx := errgroup.WithContext(ctx)
	asked.SetLimit(rightsAtOnce)
	for _, review := range reviews {
		asked.Go(func() error {
			return kube.Retry(askCtx, func(ctx context.Context) error { return s.Client.Create(ctx, review) })
		})
	}
	return reviews, asked.Wait()
}

// rightsAtOnce bounds the questions about rights that are asked at once.
const rightsAtOnce = 8
