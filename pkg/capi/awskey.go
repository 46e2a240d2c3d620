package capi

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// AWSKey is the access key of an AWSClusterStaticIdentity. SessionToken is "" for a key that does not end. No format prints a part of it.
type AWSKey struct{ AccessKeyID, SecretAccessKey, SessionToken string }

// Format implements fmt.Formatter.
func (AWSKey) Format(f fmt.State, _ rune) { fmt.Fprint(f, "(an access key)") }

// AWSStaticKey returns the key of the AWSClusterStaticIdentity called name. It reads the Secret that the identity in the cluster names, in
// the namespace of the provider, as the provider does, and no other Secret. Its errors have names alone.
func (m *Manager) AWSStaticKey(ctx context.Context, name string) (AWSKey, error) {
	inventory, err := m.inventory(ctx)
	if err != nil {
		return AWSKey{}, err
	}
	var namespace string
	for _, p := range inventory {
		if p.ProviderName == "aws" && releases.TypeOf(p.GetProviderType()) == releases.Infrastructure {
			namespace = p.Namespace
		}
	}
	if namespace == "" {
		return AWSKey{}, diag.Errorf("install the provider with `fleetctl init`", "the provider aws is not installed")
	}
	mapping, err := m.kube.Mapping(ctx, schema.GroupKind{Group: "infrastructure.cluster.x-k8s.io", Kind: awsStaticIdentity})
	if err != nil {
		return AWSKey{}, fmt.Errorf("look for the %s %s: %w", awsStaticIdentity, name, err)
	}
	identity := &unstructured.Unstructured{}
	identity.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := m.kube.Get(ctx, kube.Key{Name: name}, identity); err != nil {
		return AWSKey{}, fmt.Errorf("get %s %s: %w", awsStaticIdentity, name, err)
	}
	ref, _, _ := unstructured.NestedString(identity.Object, "spec", "secretRef")
	if ref == "" {
		return AWSKey{}, fmt.Errorf("the %s %s names no Secret in spec.secretRef", awsStaticIdentity, name)
	}
	at := kube.Key{Namespace: namespace, Name: ref}
	secret := &corev1.Secret{}
	if err := m.kube.Get(ctx, at, secret); err != nil {
		return AWSKey{}, fmt.Errorf("get Secret %s: %w", at, err)
	}
	for _, field := range []string{"AccessKeyID", "SecretAccessKey"} {
		if len(secret.Data[field]) == 0 {
			return AWSKey{}, fmt.Errorf("get Secret %s: it has no key %q", at, field)
		}
	}
	return AWSKey{string(secret.Data["AccessKeyID"]), string(secret.Data["SecretAccessKey"]), string(secret.Data["SessionToken"])}, nil
}
