package capi

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// IdentitySecret is a Secret with credentials that an identity of a provider names, and that a move leaves behind.
type IdentitySecret struct {
	// Identity is the object that names it: AWSClusterStaticIdentity prod.
	Identity kube.Ref
	Secret   kube.Key
}

// String names both.
func (s IdentitySecret) String() string { return fmt.Sprintf("Secret %s of %s", s.Secret, s.Identity) }

// identitySecrets finds the Secrets of the providers' identities that clusterctl's move does not take along: it takes those
// that carry its label, and those that the identity owns where the identity's kind is moved with its dependants.
func (m *Manager) identitySecrets(ctx context.Context) ([]IdentitySecret, error) {
	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := m.kube.List(ctx, crds, kube.MatchingLabels{clusterctlv1.ClusterctlLabel: ""}); err != nil {
		return nil, fmt.Errorf("list the providers' CRDs: %w", err)
	}
	var left []IdentitySecret
	for i := range crds.Items {
		crd := &crds.Items[i]
		if !strings.HasSuffix(crd.Spec.Names.Kind, "Identity") {
			continue
		}
		found, err := m.secretsOfKind(ctx, crd)
		if err != nil {
			return nil, err
		}
		left = append(left, found...)
	}
	slices.SortFunc(left, func(a, b IdentitySecret) int { return cmp.Compare(a.String(), b.String()) })
	return left, nil
}

func (m *Manager) secretsOfKind(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) ([]IdentitySecret, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: storageVersion(crd), Kind: crd.Spec.Names.ListKind})
	if err := m.listAll(ctx, crd.Spec.Names.Plural, list); err != nil {
		return nil, err
	}
	_, hierarchy := crd.Labels[clusterctlv1.ClusterctlMoveHierarchyLabel]
	var left []IdentitySecret
	for i := range list.Items {
		identity := &list.Items[i]
		for _, name := range secretNames(identity) {
			if name.Namespace == "" {
				name.Namespace = m.providerNamespace(crd)
			}
			taken, err := m.isTaken(ctx, name, identity, hierarchy)
			if err != nil {
				return nil, err
			}
			if !taken {
				left = append(left, IdentitySecret{Identity: kube.RefOf(identity), Secret: name})
			}
		}
	}
	return left, nil
}

// isTaken tells whether clusterctl's move takes the Secret along. One that does not exist cannot be left behind.
func (m *Manager) isTaken(ctx context.Context, name kube.Key, identity *unstructured.Unstructured, hierarchy bool) (bool, error) {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := m.kube.Get(ctx, name, secret); err != nil {
		if kube.IsAbsent(err) {
			return true, nil
		}
		return false, fmt.Errorf("look at Secret %s: %w", name, err)
	}
	if _, labelled := secret.Labels[clusterctlv1.ClusterctlMoveLabel]; labelled {
		return true, nil
	}
	owned := slices.ContainsFunc(secret.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == identity.GetUID() })
	return hierarchy && owned, nil
}

// secretNames are the Secrets that an identity's spec names, in the ways of the providers in use: secretRef or secretName
// (a name), secretRef or clientSecret (a name and perhaps a namespace). Without a namespace the identity's own counts.
func secretNames(identity *unstructured.Unstructured) []kube.Key {
	spec, _, _ := unstructured.NestedMap(identity.Object, "spec")
	var names []kube.Key
	for _, field := range []string{"secretRef", "secretName", "clientSecret"} {
		switch value := spec[field].(type) {
		case string:
			names = append(names, kube.Key{Namespace: identity.GetNamespace(), Name: value})
		case map[string]any:
			name, _ := value["name"].(string)
			namespace, _ := value["namespace"].(string)
			names = append(names, kube.Key{Namespace: cmp.Or(namespace, identity.GetNamespace()), Name: name})
		}
	}
	return slices.DeleteFunc(names, func(k kube.Key) bool { return k.Name == "" })
}

// providerNamespace is where a provider's controller looks for the Secrets of cluster-wide identities: the namespace of the
// webhook service that the CRD names, else as clusterctl's providers are called.
func (m *Manager) providerNamespace(crd *apiextensionsv1.CustomResourceDefinition) string {
	if c := crd.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil && c.Webhook.ClientConfig.Service != nil {
		return c.Webhook.ClientConfig.Service.Namespace
	}
	return metav1.NamespaceDefault
}

func storageVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}
