package graph

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

var (
	clusterKind      = clusterv1.GroupVersion.WithKind("Cluster")
	clusterGroupKind = clusterKind.GroupKind()
	classGroupKind   = clusterv1.GroupVersion.WithKind("ClusterClass").GroupKind()
	setGroupKind     = addonsv1.GroupVersion.WithKind("ClusterResourceSet").GroupKind()
	secretKind       = corev1.SchemeGroupVersion.WithKind("Secret")
	configMapKind    = corev1.SchemeGroupVersion.WithKind("ConfigMap")
)

// parallelism bounds the concurrent requests.
const parallelism = 24

// heldKind is a kind whose objects may be handed over, in its storage version, which needs no conversion webhook.
type heldKind struct {
	schema.GroupVersionKind
	// root means that a hand-over of everything includes its objects and all that they own.
	root bool
	// custom means that a CRD serves the kind.
	custom bool
	// status means that the kind has a status subresource.
	status bool
	// home is the namespace of the controller, where it looks for the Secrets of cluster-scoped objects.
	home string
	// provider means that a provider of Cluster API acts on its objects.
	provider bool
	// label is the provider's in clusterctl's inventory, such as infrastructure-aws; "" if the CRD does not say whose it is.
	label string
}

// ipamGroup is the API group of IP addresses and their claims.
const ipamGroup = "ipam.cluster.x-k8s.io"

// metal3Addresses is the API group of Metal3's own addresses: https://github.com/metal3-io/ip-address-manager.
const metal3Addresses = "ipam.metal3.io"

// metal3Hosts is the API group of the machines of Metal3, whose operator is installed without clusterctl:
// https://github.com/metal3-io/baremetal-operator.
const metal3Hosts = "metal3.io"

// fluxSourceGroup is the API group of Flux's sources.
const fluxSourceGroup = "source.toolkit.fluxcd.io"

// OfFlux tells whether Flux serves the API group. A hand-over copies all objects of Flux, or none.
func OfFlux(group string) bool { return strings.HasSuffix(group, ".toolkit.fluxcd.io") }

// kindCache keeps the kinds of a cluster during a hand-over, because reading the CRDs means megabytes.
type kindCache struct {
	mu    sync.Mutex
	kinds []*heldKind
}

// heldKinds returns all kinds of the cluster whose objects can belong to a Cluster: those of all CRDs, and ConfigMaps and Secrets. It
// cannot select CRDs by clusterctl's label, because some providers do not have it on all CRDs.
func (m *Members) heldKinds(ctx context.Context) ([]*heldKind, error) {
	m.kinds.mu.Lock()
	defer m.kinds.mu.Unlock()
	if m.kinds.kinds == nil {
		kinds, err := m.listHeldKinds(ctx)
		if err != nil {
			return nil, err
		}
		m.kinds.kinds = kinds
	}
	return m.kinds.kinds, nil
}

func (m *Members) listHeldKinds(ctx context.Context) ([]*heldKind, error) {
	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	err := kube.Retry(ctx, func(ctx context.Context) error { return m.kube.List(ctx, crds) })
	if err != nil {
		return nil, fmt.Errorf("list the CRDs: %w", err)
	}
	homes, err := m.homes(ctx)
	if err != nil {
		return nil, err
	}
	kinds := []*heldKind{{GroupVersionKind: secretKind}, {GroupVersionKind: configMapKind}}
	for i := range crds.Items {
		// clusterctl's inventory describes only this management cluster.
		if crd := &crds.Items[i]; crd.Spec.Group != clusterctlv1.GroupVersion.Group {
			kinds = append(kinds, heldKindOf(crd, homes))
		}
	}
	return kinds, nil
}

// homes returns the namespaces of the providers in clusterctl's inventory, by their labels. There are none if clusterctl was never used.
func (m *Members) homes(ctx context.Context) (map[string]string, error) {
	providers, err := m.kube.ListKind(ctx, clusterctlv1.GroupVersion.WithKind("Provider"))
	if err != nil && !kube.IsAbsent(err) {
		return nil, fmt.Errorf("list the installed providers: %w", err)
	}
	homes := map[string]string{}
	for i := range providers {
		homes[providers[i].GetLabels()[clusterv1.ProviderNameLabel]] = providers[i].GetNamespace()
	}
	delete(homes, "")
	return homes, nil
}

func heldKindOf(crd *apiextensionsv1.CustomResourceDefinition, homes map[string]string) *heldKind {
	k := &heldKind{
		GroupVersionKind: schema.GroupVersionKind{Group: crd.Spec.Group, Version: kube.StorageVersion(crd), Kind: crd.Spec.Names.Kind},
		custom:           true, home: providerNamespace(crd, homes),
	}
	label, installed := crd.Labels[clusterv1.ProviderNameLabel]
	k.label = label
	k.provider = installed && !strings.HasSuffix(crd.Spec.Group, "cert-manager.io") || isOfClusterAPI(crd.Spec.Group)
	_, move := crd.Labels[clusterctlv1.ClusterctlMoveLabel]
	_, hierarchy := crd.Labels[clusterctlv1.ClusterctlMoveHierarchyLabel]
	k.root = move || hierarchy || slices.Contains([]schema.GroupKind{clusterGroupKind, classGroupKind, setGroupKind}, k.GroupKind())
	for _, v := range crd.Spec.Versions {
		if v.Storage && v.Subresources != nil && v.Subresources.Status != nil {
			k.status = true
		}
	}
	return k
}

func isOfClusterAPI(group string) bool {
	return group == clusterGroupKind.Group || strings.HasSuffix(group, "."+clusterGroupKind.Group)
}

// listed are the objects of one kind.
type listed struct {
	kind    *heldKind
	objects []unstructured.Unstructured
}

// listKinds lists the objects of kinds in all namespaces, in parallel. A kind that no longer exists has none.
func listKinds(ctx context.Context, c *kube.Client, kinds []*heldKind) ([]listed, error) {
	found := make([]listed, len(kinds))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelism)
	for i, k := range kinds {
		group.Go(func() error {
			objects, err := c.ListKind(ctx, k.GroupVersionKind)
			found[i] = listed{k, objects}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return found, nil
}

// providerNamespace returns the namespace in which a provider's controller looks for the Secrets of cluster-scoped identities: that of the
// CRD's webhook service, or else that of the provider in homes, or else "default". AWSClusterStaticIdentity and VSphereClusterIdentity have
// no webhook.
func providerNamespace(crd *apiextensionsv1.CustomResourceDefinition, homes map[string]string) string {
	if c := crd.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil && c.Webhook.ClientConfig.Service != nil {
		return c.Webhook.ClientConfig.Service.Namespace
	}
	return cmp.Or(homes[crd.Labels[clusterv1.ProviderNameLabel]], metav1.NamespaceDefault)
}
