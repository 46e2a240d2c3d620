//go:build integration

package capi

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registration "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestWaitsForTrustedWebhooks checks that a webhook whose certificate authority differs from its server's does not count as answering.
func TestWaitsForTrustedWebhooks(t *testing.T) {
	m, c, source := newManagement(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := m.Install(ctx, source, InstallOptions{Providers: resolve(t, source, allProviders)}); err != nil {
		t.Fatal(err)
	}
	refuses := func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "no"}}
		if err := json.NewEncoder(w).Encode(review); err != nil {
			panic(err)
		}
	}
	server := httptest.NewTLSServer(http.HandlerFunc(refuses))
	t.Cleanup(server.Close)
	another, _, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	none := registration.SideEffectClassNone
	hook := &registration.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "machines.example.com", Labels: map[string]string{clusterctlv1.ClusterctlLabel: ""}},
		Webhooks: []registration.MutatingWebhook{{
			Name: "machines.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none,
			ClientConfig: registration.WebhookClientConfig{URL: &server.URL, CABundle: another},
			Rules: []registration.RuleWithOperations{{
				Operations: []registration.OperationType{registration.Create},
				Rule: registration.Rule{
					APIGroups: []string{"cluster.x-k8s.io"}, APIVersions: []string{"v1beta2"},
					Resources: []string{"gone", "machines"},
				},
			}},
		}},
	}
	if err := c.Create(ctx, hook); err != nil {
		t.Fatal(err)
	}
	probe, err := m.probeFor(t.Context(), hook.Webhooks[0].Rules)
	if err != nil || probe == nil || probe.GetKind() != "Machine" || probe.GetNamespace() != metav1.NamespaceDefault {
		t.Fatalf("the probe is %v, %v", probe, err)
	}
	// The API server takes a moment to notice a new webhook.
	for known := false; !known; known = apierrors.IsInternalError(c.Create(ctx, probe.DeepCopy(), client.DryRunAll)) {
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
	}
	short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	if err := m.WaitWebhooks(short, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v while the API server does not trust the webhook", err)
	}
	done, told := make(chan error, 1), make(chan string, 1)
	go func() {
		done <- m.WaitWebhooks(ctx, func(line string) {
			select {
			case told <- line:
			default: // the first line is enough
			}
		})
	}()
	if line := <-told; line != "waiting until the webhooks for Machine answer" {
		t.Errorf("the progress is %q", line)
	}
	hook.Webhooks[0].ClientConfig.CABundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := c.WithWatch.Update(ctx, hook); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
