package capi

import (
	"context"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/cluster"
	"sigs.k8s.io/cluster-api/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// proxy gives clusterctl's library the one client of the cluster. Otherwise the library would make a client for each object, and could read
// the user's kubeconfig.
type proxy struct {
	client *kube.Client
}

var _ cluster.Proxy = (*proxy)(nil)

// newProxy returns a proxy that shares the connections of c.
func newProxy(c *kube.Client) (*proxy, error) {
	wider, err := c.WithScheme(clusterctlv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	return &proxy{client: wider}, nil
}

// GetConfig returns the configuration of the client.
func (p *proxy) GetConfig() (*rest.Config, error) { return p.client.Config(), nil }

// CurrentNamespace always returns default, because callers give their namespace.
func (p *proxy) CurrentNamespace() (string, error) { return metav1.NamespaceDefault, nil }

// ValidateKubernetesVersion refuses clusters that are too old for Cluster API.
func (p *proxy) ValidateKubernetesVersion() error {
	return version.CheckKubernetesVersion(p.client.Config(), version.MinimumKubernetesVersion)
}

// NewClient returns the shared client.
func (p *proxy) NewClient(context.Context) (client.Client, error) { return p.client.WithWatch, nil }

// CheckClusterAvailable asks the API server for its version.
func (p *proxy) CheckClusterAvailable(ctx context.Context) error {
	_, err := p.client.ServerVersion(ctx)
	return err
}

// ListResources lists the objects with these labels: the cluster-scoped ones, and those in the namespaces. Like clusterctl, it leaves out
// custom resources of providers' CRDs, because their webhooks may not answer.
func (p *proxy) ListResources(ctx context.Context, labels map[string]string, namespaces ...string) ([]unstructured.Unstructured, error) {
	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := p.client.List(ctx, crds); err != nil {
		return nil, fmt.Errorf("list the CRDs: %w", err)
	}
	// Custom resources of cert-manager's CRDs are left out only if cert-manager's own objects are listed: a provider's Certificates must be
	// found.
	ofCertManager := labels[clusterctlv1.ClusterctlCoreLabel] == clusterctlv1.ClusterctlCoreLabelCertManagerValue
	custom := map[schema.GroupKind]bool{}
	for i := range crds.Items {
		crd := &crds.Items[i]
		_, ofProvider := crd.Labels[clusterv1.ProviderNameLabel]
		custom[schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}] = ofProvider || ofCertManager
	}
	return p.client.ListLabelled(ctx, labels, namespaces, func(kind schema.GroupKind) bool { return custom[kind] })
}

// GetContexts implements cluster.Proxy for clusterctl's completion, which fleetctl does not call.
func (p *proxy) GetContexts(string) ([]string, error) {
	return nil, fmt.Errorf("list contexts: %w", errors.ErrUnsupported)
}

// GetResourceNames implements cluster.Proxy for clusterctl's completion, which fleetctl does not call.
func (p *proxy) GetResourceNames(context.Context, string, string, []client.ListOption, string) ([]string, error) {
	return nil, fmt.Errorf("list resource names: %w", errors.ErrUnsupported)
}
