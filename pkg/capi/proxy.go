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

// proxy gives clusterctl's library our one client per cluster, where it would build one for each object it touches, and keeps
// it from any kubeconfig of the user's own.
type proxy struct {
	client *kube.Client
}

var _ cluster.Proxy = (*proxy)(nil)

// newProxy shares client's connections.
func newProxy(c *kube.Client) (*proxy, error) {
	wider, err := c.WithScheme(clusterctlv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	return &proxy{client: wider}, nil
}

// GetConfig is how the cluster is reached.
func (p *proxy) GetConfig() (*rest.Config, error) { return p.client.Config(), nil }

// CurrentNamespace is always default: callers name their namespace.
func (p *proxy) CurrentNamespace() (string, error) { return metav1.NamespaceDefault, nil }

// ValidateKubernetesVersion refuses clusters that are too old for Cluster API.
func (p *proxy) ValidateKubernetesVersion() error {
	return version.CheckKubernetesVersion(p.client.Config(), version.MinimumKubernetesVersion)
}

// NewClient is the shared client.
func (p *proxy) NewClient(context.Context) (client.Client, error) { return p.client.WithWatch, nil }

// CheckClusterAvailable asks the API server for its version.
func (p *proxy) CheckClusterAvailable(ctx context.Context) error {
	_, err := p.client.ServerVersion(ctx)
	return err
}

// ListResources lists what carries labels: cluster-wide objects, and those of namespaces. Custom resources of CRDs that providers or
// cert-manager brought are left out, as clusterctl does it: their webhooks may not answer.
func (p *proxy) ListResources(ctx context.Context, labels map[string]string, namespaces ...string) ([]unstructured.Unstructured, error) {
	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := p.client.List(ctx, crds); err != nil {
		return nil, fmt.Errorf("list the CRDs: %w", err)
	}
	// Of cert-manager its own objects are looked for, and of a provider the Certificates that it brought.
	ofCertManager := labels[clusterctlv1.ClusterctlCoreLabel] == clusterctlv1.ClusterctlCoreLabelCertManagerValue
	custom := map[schema.GroupKind]bool{}
	for i := range crds.Items {
		crd := &crds.Items[i]
		_, ofProvider := crd.Labels[clusterv1.ProviderNameLabel]
		custom[schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}] = ofProvider || ofCertManager
	}
	return p.client.ListLabelled(ctx, labels, namespaces, func(kind schema.GroupKind) bool { return custom[kind] })
}

// GetContexts is for clusterctl's completion, which fleetctl does not call.
func (p *proxy) GetContexts(string) ([]string, error) {
	return nil, fmt.Errorf("list contexts: %w", errors.ErrUnsupported)
}

// GetResourceNames is for clusterctl's completion, which fleetctl does not call.
func (p *proxy) GetResourceNames(context.Context, string, string, []client.ListOption, string) ([]string, error) {
	return nil, fmt.Errorf("list resource names: %w", errors.ErrUnsupported)
}
