package capi

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

var apiServiceKind = schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}

// UntoldError says that the API server does not serve Clusters although the cluster has, or had, a core provider. So the workload clusters
// are unknown.
type UntoldError struct {
	// Trace is the sign of the core provider.
	Trace string
	// Err is the error of the API server. It is not wrapped, so that no caller takes it for "there are no Clusters".
	Err error
}

// Error names the trace.
func (e *UntoldError) Error() string {
	return fmt.Sprintf("nobody can tell which workload clusters there are: %s, but %v", e.Trace, e.Err)
}

// absent returns nil for an error "no such kind" if Cluster API was never installed, so that there are no Clusters. If there is a trace of
// a core provider, the kind is missing for another reason: a CRD was deleted or serves only other versions, or discovery failed. The
// Clusters may still exist, so absent returns an *UntoldError. It returns other errors unchanged.
func (m *Manager) absent(ctx context.Context, err error) error {
	if !kube.IsAbsent(err) {
		return err
	}
	trace, lookErr := m.coreTrace(ctx)
	if lookErr != nil {
		return fmt.Errorf("look whether Cluster API is installed: %w", lookErr)
	}
	if trace == "" {
		return nil
	}
	return diag.Wrap("", &UntoldError{Trace: trace, Err: err},
		"see `kubectl get crd clusters.cluster.x-k8s.io` and `kubectl get apiservices`; `fleetctl init` installs what is missing of Cluster API")
}

// coreTrace describes a sign that a core provider is or was installed. It returns "" if there is none.
func (m *Manager) coreTrace(ctx context.Context) (string, error) {
	deployments := &metav1.PartialObjectMetadataList{}
	deployments.SetGroupVersionKind(kube.DeploymentKind.GroupVersion().WithKind("DeploymentList"))
	if err := m.kube.List(ctx, deployments, kube.MatchingLabels{clusterv1.ProviderNameLabel: coreLabel}); err != nil && !kube.IsAbsent(err) {
		return "", err // an API server without Deployments has no provider
	}
	if len(deployments.Items) > 0 {
		d := deployments.Items[0]
		return fmt.Sprintf("the core provider is here (Deployment %s/%s)", d.Namespace, d.Name), nil
	}
	inventory, err := m.inventory(ctx)
	if err != nil {
		return "", err
	}
	for _, p := range inventory {
		if releases.TypeOf(p.GetProviderType()) == releases.Core {
			return fmt.Sprintf("clusterctl's inventory has the core provider %s", p.ProviderName), nil
		}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	switch err := m.kube.Get(ctx, kube.Key{Name: clusterCRD}, crd); {
	case err == nil:
		return "the CRD " + clusterCRD + " is here", nil
	case !kube.IsAbsent(err):
		return "", err
	}
	return m.aggregated(ctx)
}

const (
	coreLabel  = "cluster-api"
	clusterCRD = "clusters.cluster.x-k8s.io"
)

// aggregated describes an aggregated API server that serves Clusters. It returns "" if there is none.
func (m *Manager) aggregated(ctx context.Context) (string, error) {
	services := &unstructured.UnstructuredList{}
	services.SetGroupVersionKind(apiServiceKind.GroupVersion().WithKind("APIServiceList"))
	if err := m.kube.List(ctx, services); err != nil {
		if kube.IsAbsent(err) {
			return "", nil
		}
		return "", err
	}
	for _, s := range services.Items {
		group, _, _ := unstructured.NestedString(s.Object, "spec", "group") // the API server has checked its type
		_, remote, _ := unstructured.NestedMap(s.Object, "spec", "service")
		if remote && group == clusterv1.GroupVersion.Group {
			return "an aggregated API server serves them (APIService " + s.GetName() + ")", nil
		}
	}
	return "", nil
}
