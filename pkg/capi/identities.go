package capi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Identity is an object with the credentials for clusters of a cloud.
type Identity struct {
	Kind, Namespace, Name string
	// Provider is the infrastructure provider of the identity.
	Provider string
	// Source describes the credentials: a role, a Secret, or the identity of the provider's own pods.
	Source string
	// Since is the time at which the object was created.
	Since time.Time
	// Namespaces describes the namespaces whose clusters may use the identity: "all", "none", or names.
	Namespaces string
}

// openStackIdentity is a kind with other rules than the others: see allowedNamespaces.
const openStackIdentity = "OpenStackClusterIdentity"

// awsStaticIdentity is a kind whose key AWSStaticKey reads.
const awsStaticIdentity = "AWSClusterStaticIdentity"

// identityKinds are the kinds of identities, with their providers. source reads Identity.Source from an object's spec.
var identityKinds = []struct {
	kind, provider string
	source         func(spec map[string]any) string
}{
	{"AWSClusterControllerIdentity", "aws", func(map[string]any) string { return "the provider's own pods" }},
	{"AWSClusterRoleIdentity", "aws", func(spec map[string]any) string { return "role " + text(spec, "roleARN") }},
	{awsStaticIdentity, "aws", func(spec map[string]any) string { return "Secret " + text(spec, "secretRef") }},
	{"AzureClusterIdentity", "azure", func(spec map[string]any) string {
		if secret := text(spec, "clientSecret", "name"); secret != "" {
			return text(spec, "type") + ", Secret " + text(spec, "clientSecret", "namespace") + "/" + secret
		}
		return text(spec, "type") + " " + text(spec, "clientID")
	}},
	{"VSphereClusterIdentity", "vsphere", func(spec map[string]any) string { return "Secret " + text(spec, "secretName") }},
	{openStackIdentity, "openstack", func(spec map[string]any) string {
		return "Secret " + text(spec, "secretRef", "namespace") + "/" + text(spec, "secretRef", "name")
	}},
}

func text(spec map[string]any, fields ...string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(spec, fields...)
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// Identities returns the identities in the cluster, of all providers.
func (m *Manager) Identities(ctx context.Context) ([]Identity, error) {
	var all []Identity
	for _, k := range identityKinds {
		mapping, err := m.kube.Mapping(ctx, schema.GroupKind{Group: "infrastructure.cluster.x-k8s.io", Kind: k.kind})
		if meta.IsNoMatchError(err) || kube.IsAbsent(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for identities: %w", err)
		}
		objects, err := m.kube.ListKind(ctx, mapping.GroupVersionKind)
		if err != nil {
			return nil, err
		}
		for i := range objects {
			o := &objects[i]
			spec, _, _ := unstructured.NestedMap(o.Object, "spec")
			all = append(all, Identity{
				Kind: k.kind, Namespace: o.GetNamespace(), Name: o.GetName(), Provider: k.provider,
				Source: strings.TrimSpace(k.source(spec)), Since: o.GetCreationTimestamp().UTC(), Namespaces: allowedNamespaces(k.kind, spec),
			})
		}
	}
	return all, nil
}

// allowedNamespaces returns who may use an identity. Without the field nobody may, and with an empty field everybody may. On OpenStack,
// everybody may without the field, which is a selector itself.
func allowedNamespaces(kind string, spec map[string]any) string {
	value, there := spec["allowedNamespaces"]
	if kind == openStackIdentity {
		selector, _, _ := unstructured.NestedMap(spec, "namespaceSelector")
		value, there = map[string]any{"selector": selector}, true
	}
	allowed, isMap := value.(map[string]any)
	if !there || !isMap {
		return "none"
	}
	names, _, _ := unstructured.NestedStringSlice(allowed, "list")
	slices.Sort(names)
	selector, _, _ := unstructured.NestedMap(allowed, "selector")
	if len(selector) > 0 {
		raw := &metav1.LabelSelector{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(selector, raw); err != nil {
			return "a selector that cannot be read"
		}
		names = append(names, "labelled "+metav1.FormatLabelSelector(raw))
	}
	if len(names) == 0 {
		return "all"
	}
	return strings.Join(names, ", ")
}
