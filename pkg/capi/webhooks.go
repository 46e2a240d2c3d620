package capi

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// WaitWebhooks waits until cert-manager has given the API server the certificates of all the webhooks that clusterctl
// installed, and Cluster API's own admit a Cluster in a dry run.
func (m *Manager) WaitWebhooks(ctx context.Context) error {
	group, watchCtx := errgroup.WithContext(ctx)
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		group.Go(func() error {
			sel := kube.Selection{Labels: map[string]string{clusterctlv1.ClusterctlLabel: ""}}
			waiting := ""
			err := m.kube.Watch(watchCtx, admissionv1.SchemeGroupVersion.WithKind(kind), sel, func(objects kube.Objects) (bool, error) {
				for key, obj := range objects {
					if !hasCA(obj) {
						waiting = key.Name
						return false, nil
					}
				}
				return true, nil
			})
			if err != nil {
				return fmt.Errorf("wait for the certificate of %s %s: %w", kind, waiting, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return m.probeAdmission(ctx)
}

// injectAnnotations are those by which cert-manager knows where to put a certificate authority.
var injectAnnotations = []string{"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret"}

// hasCA tells whether all the webhooks of a configuration have the certificate authority that they are called with. One that
// does not ask cert-manager for it needs none.
func hasCA(obj *unstructured.Unstructured) bool {
	if !slices.ContainsFunc(injectAnnotations, func(name string) bool { return obj.GetAnnotations()[name] != "" }) {
		return true
	}
	webhooks, _, _ := unstructured.NestedSlice(obj.Object, "webhooks")
	for _, each := range webhooks {
		webhook, ok := each.(map[string]any)
		if !ok {
			continue
		}
		if ca, _, _ := unstructured.NestedString(webhook, "clientConfig", "caBundle"); ca == "" {
			return false
		}
	}
	return true
}

// probeAdmission tries a Cluster in a dry run. Conversion webhooks are served by the same process behind the same certificate, so they
// answer when admission does; a conversion itself cannot be probed with a kind of infrastructure that does not exist.
func (m *Manager) probeAdmission(ctx context.Context) error {
	return m.kube.DryRunAdmission(ctx, probeCluster())
}

// probeCluster is a Cluster that Cluster API's webhooks admit. It is never really made.
func probeCluster() *unstructured.Unstructured {
	const name = "fleetctl-dry-run"
	obj := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": metav1.NamespaceDefault, "name": name},
		"spec": map[string]any{"infrastructureRef": map[string]any{
			"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "ProbeCluster", "name": name,
		}},
	}}
	obj.SetGroupVersionKind(clusterKind)
	return obj
}
