package capi

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/version"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// MinimumKubernetes is the oldest version of Kubernetes on which this Cluster API runs a management cluster.
const MinimumKubernetes = version.MinimumKubernetesVersion

// Stored returns the versions in which the cluster stores the objects of its CRDs, by the names of the CRDs.
func (m *Manager) Stored(ctx context.Context) (map[string]string, error) {
	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := m.kube.List(ctx, crds, kube.MatchingLabels{clusterctlv1.ClusterctlLabel: ""}); err != nil {
		return nil, fmt.Errorf("list the CRDs: %w", err)
	}
	stored := map[string]string{}
	for i := range crds.Items {
		stored[crds.Items[i].Name] = kube.StorageVersion(&crds.Items[i])
	}
	return stored, nil
}

// CertManagerVersion returns the version of the cert-manager that clusterctl or init has installed, or "" if there is none. ours is false
// if somebody else has installed it; the version is then "".
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
