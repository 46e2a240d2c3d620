//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// madeOnce checks that cert-manager has issued no certificate for the providers: init has brought them, and the providers' CRDs with them.
// So no CRD was written a second time, which costs the API server as much as a new one.
func madeOnce(t *testing.T, s *story) {
	c := s.client(s.made.Kubeconfig)
	eventually(t, "the certificates are ready", 30*time.Second, func() string {
		certificates := issued(t, c, "Certificate")
		if len(certificates) < 4 { // one for each of four providers
			return fmt.Sprintf("there are %d Certificates", len(certificates))
		}
		for i := range certificates {
			conditions, _, _ := unstructured.NestedSlice(certificates[i].Object, "status", "conditions")
			if !isReady(conditions) {
				return fmt.Sprintf("%s/%s: %v", certificates[i].GetNamespace(), certificates[i].GetName(), conditions)
			}
		}
		return ""
	})
	for _, r := range issued(t, c, "CertificateRequest") {
		t.Errorf("cert-manager has issued a certificate: %s/%s", r.GetNamespace(), r.GetName())
	}
	crds := &metav1.PartialObjectMetadataList{}
	crds.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
	if err := c.List(t.Context(), crds); err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, crd := range crds.Items {
		if _, ofProvider := crd.Labels["cluster.x-k8s.io/provider"]; !ofProvider {
			continue
		}
		looked++
		if crd.Generation != 1 {
			t.Errorf("the CRD %s was written %d times", crd.Name, crd.Generation)
		}
	}
	if looked == 0 {
		t.Error("there are no CRDs of providers")
	}
}

// issued lists what cert-manager has of a kind.
func issued(t *testing.T, c *kube.Client, kind string) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: kind + "List"})
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func isReady(conditions []any) bool {
	for _, c := range conditions {
		if c, is := c.(map[string]any); is && c["type"] == "Ready" && c["status"] == "True" {
			return true
		}
	}
	return false
}
