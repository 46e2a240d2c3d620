package capi

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/version"

	"github.com/fleetctl/fleetctl/pkg/capi/internal/graph"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// MinimumKubernetes is the oldest version of Kubernetes on which this Cluster API runs a management cluster.
const MinimumKubernetes = version.MinimumKubernetesVersion

// Release is what there is to know of a version of a provider before it is installed.
type Release struct {
	// Contract of Cluster API that it implements; Fits tells that this fleetctl's Cluster API works with it.
	Contract string
	Fits     bool
	// Deployments that it runs as.
	Deployments []string
	// Stores are the versions in which it has its kinds stored, by the names of their CRDs.
	Stores map[string]string
}

// Release reads a version of a provider. Variables need no values for it.
func (s *Source) Release(ctx context.Context, p Provider) (*Release, error) {
	contract, err := s.contractOf(ctx, p)
	if err != nil {
		return nil, err
	}
	components, err := s.load(ctx, p, true)
	if err != nil {
		return nil, err
	}
	r := &Release{Contract: contract, Fits: fits(p.Type, contract), Stores: map[string]string{}}
	for _, obj := range components.Objs() {
		switch {
		case obj.GroupVersionKind() == deploymentKind:
			r.Deployments = append(r.Deployments, obj.GetName())
		case obj.GetKind() == "CustomResourceDefinition":
			if stored := storedBy(&obj); stored != "" {
				r.Stores[obj.GetName()] = stored
			}
		}
	}
	return r, nil
}

// storedBy is the version in which a CRD has its objects stored; "" where that cannot be read.
func storedBy(obj *unstructured.Unstructured) string {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, crd); err != nil {
		return ""
	}
	return graph.StorageVersion(crd)
}

// IsOlder tells whether a version is before another one. What is no version is before nothing.
func IsOlder(a, b string) bool { return compareVersions(a, b) < 0 }

// Stored are the versions in which the cluster stores the objects of its CRDs, by the CRDs' names.
func (m *Manager) Stored(ctx context.Context) (map[string]string, error) {
	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := m.kube.List(ctx, crds, kube.MatchingLabels{clusterctlv1.ClusterctlLabel: ""}); err != nil {
		return nil, fmt.Errorf("list the CRDs: %w", err)
	}
	stored := map[string]string{}
	for i := range crds.Items {
		stored[crds.Items[i].Name] = graph.StorageVersion(&crds.Items[i])
	}
	return stored, nil
}

// CertManagerVersion is the version of the cert-manager that clusterctl, or init, has installed. ours is false for somebody else's, whose
// version is not looked for; "" is none.
func (m *Manager) CertManagerVersion(ctx context.Context) (version string, ours bool, err error) {
	crd, err := m.certManagerCRD(ctx)
	if err != nil || crd == nil {
		return "", err == nil, err
	}
	if crd.Labels[clusterctlv1.ClusterctlCoreLabel] != clusterctlv1.ClusterctlCoreLabelCertManagerValue {
		return "", false, nil
	}
	deployments, err := m.deployments(ctx)
	if err != nil {
		return "", true, err
	}
	for _, d := range deployments {
		if d.GetLabels()[clusterctlv1.ClusterctlCoreLabel] == clusterctlv1.ClusterctlCoreLabelCertManagerValue {
			return d.GetAnnotations()[clusterctlv1.CertManagerVersionAnnotation], true, nil
		}
	}
	return "", true, nil
}
