//go:build integration

package controlplane_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/controlplane"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/egress"
)

// TestWebhookBehindAService lets a real API server call a real webhook through the proxy, and its error reach the user.
func TestWebhookBehindAService(t *testing.T) {
	dir := t.TempDir()
	authority, serving := webhookCertificate(t, "hook.system.svc")
	var calls atomic.Int32
	hook := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		review := admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		allowed := !strings.HasPrefix(review.Request.Name, "bad")
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: allowed,
			Result: &metav1.Status{Message: "no bad names"},
		}
		_ = json.NewEncoder(w).Encode(review)
	}))
	hook.TLS = &tls.Config{Certificates: []tls.Certificate{serving}}
	hook.StartTLS()
	t.Cleanup(hook.Close)

	var up atomic.Bool
	var asked atomic.Value
	proxy, err := egress.Listen(t.Context(), filepath.Join(dir, "egress.sock"), func(_ context.Context, host, port string) (string, error) {
		asked.Store(net.JoinHostPort(host, port))
		if !up.Load() {
			return "", fmt.Errorf("no process serves %s", host)
		}
		return hook.Listener.Addr().String(), nil
	}, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = proxy.Serve(t.Context()) }()

	c := start(t, controlplane.Options{Dir: dir, EgressSocket: "egress.sock"})
	set := client(t, c)
	ctx := t.Context()
	if _, err := set.CoreV1().Namespaces().Create(ctx, namespace("system"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	service, err := set.CoreV1().Services("system").Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "hook"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	none, path := admissionregistration.SideEffectClassNone, "/validate"
	_, err = set.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, &admissionregistration.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hook"},
		Webhooks: []admissionregistration.ValidatingWebhook{{
			Name: "hook.example.com", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistration.WebhookClientConfig{
				CABundle: authority, Service: &admissionregistration.ServiceReference{Namespace: "system", Name: "hook", Path: &path},
			},
			Rules: []admissionregistration.RuleWithOperations{{
				Operations: []admissionregistration.OperationType{admissionregistration.Create},
				Rule:       admissionregistration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "system"}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	create := func(name string) error {
		_, err := set.CoreV1().ConfigMaps("system").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}},
			metav1.CreateOptions{})
		return err
	}
	// The API server takes up a webhook a moment after it was made.
	deadline := time.Now().Add(patience)
	for i := 0; ; i++ {
		err := create(fmt.Sprintf("early-%d", i))
		if err != nil {
			if !strings.Contains(err.Error(), "no process serves "+service.Spec.ClusterIP) {
				t.Fatalf("the reason does not reach the user: %v", err)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the webhook is never called")
		}
		time.Sleep(50 * time.Millisecond)
	}
	up.Store(true)
	if err := create("good"); err != nil {
		t.Error(err)
	}
	if err := create("bad"); err == nil || !strings.Contains(err.Error(), "no bad names") {
		t.Errorf("got %v", err)
	}
	if calls.Load() < 2 || asked.Load() != service.Spec.ClusterIP+":443" {
		t.Errorf("%d calls, the proxy was last asked for %v", calls.Load(), asked.Load())
	}
}

// webhookCertificate is what a provider's certificate would be: for the Service's name.
func webhookCertificate(t *testing.T, name string) (authority []byte, serving tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
