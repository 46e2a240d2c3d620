//go:build integration

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

func applyInStages(t *testing.T, c *kube.Client) {
	manifest := crdManifest("Stage", "stages.test")
	first, err := kubetest.ApplyYAML(t.Context(), c, manifest, kube.ApplyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := kubetest.ApplyYAML(t.Context(), c, manifest, kube.ApplyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range first {
		if first[i].Action != kube.Created || again[i].Action != kube.Unchanged {
			t.Errorf("%s: first %s, then %s", first[i].Ref, first[i].Action, again[i].Action)
		}
	}
	differ := slices.ContainsFunc(again, func(c kube.Change) bool { return c.Action != kube.Unchanged })
	if len(first) != 3 || differ {
		t.Errorf("%d objects, changed again: %v", len(first), differ)
	}
	changed := strings.Replace(string(manifest), "name: one,", "name: one, labels: {a: b},", 1)
	third, err := kubetest.ApplyYAML(t.Context(), c, []byte(changed), kube.ApplyOptions{})
	if err != nil || third[0].Action != kube.Configured || third[1].Action != kube.Unchanged {
		t.Errorf("after a change: %v, %v", third, err)
	}
}

func applyConflict(t *testing.T, c *kube.Client) {
	manifest := func(value string) []byte {
		return fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conflict, namespace: default}\ndata: {key: %s}\n", value)
	}
	if _, err := kubetest.ApplyYAML(t.Context(), c, manifest("theirs"), kube.ApplyOptions{FieldManager: "somebody-else"}); err != nil {
		t.Fatal(err)
	}
	_, err := kubetest.ApplyYAML(t.Context(), c, manifest("ours"), kube.ApplyOptions{})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "ConfigMap default/conflict") {
		t.Errorf("got %v; want a conflict that names the object", err)
	}
	if _, err := kubetest.ApplyYAML(t.Context(), c, manifest("ours"), kube.ApplyOptions{ForceConflicts: true}); err != nil {
		t.Error(err)
	}
}

func applyTriesAll(t *testing.T, c *kube.Client) {
	changes, err := kubetest.ApplyYAML(t.Context(), c, []byte(`
{apiVersion: v1, kind: ConfigMap, metadata: {name: UPPER, namespace: default}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: tried, namespace: default}}
---
{apiVersion: v1, kind: Service, metadata: {name: no-ports, namespace: default}}
`), kube.ApplyOptions{})
	if err == nil || !strings.Contains(err.Error(), "UPPER") || !strings.Contains(err.Error(), "no-ports") {
		t.Errorf("got %v; want both errors", err)
	}
	if len(changes) != 1 || changes[0].Name != "tried" {
		t.Errorf("applied %v; want the good one", changes)
	}
}

// applyWaitsForCRD applies a custom resource before its CRD exists.
func applyWaitsForCRD(t *testing.T, c *kube.Client) {
	objects, err := kube.ParseYAML(crdManifest("Late", "late.test"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	waiting := make(chan struct{}, 100)
	go func() {
		_, err := c.Apply(t.Context(), objects[:1], kube.ApplyOptions{Detail: func(text string) {
			if strings.HasPrefix(text, "waiting") {
				waiting <- struct{}{}
			}
		}})
		done <- err
	}()
	<-waiting
	if _, err := c.Apply(t.Context(), objects[1:], kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	never := crdManifest("Never", "never.test")
	_, err = kubetest.ApplyYAML(ctx, c, never[:strings.Index(string(never), "---")], kube.ApplyOptions{})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "Never") {
		t.Errorf("got %v; want a timeout that names the object", err)
	}
}

// webhookGate checks that a dry run waits while a webhook does not answer, and returns after the webhook is removed.
func webhookGate(t *testing.T, c *kube.Client) {
	ctx := t.Context()
	if _, err := kubetest.ApplyYAML(ctx, c, crdManifest("Gated", "gated.test"), kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	nobody, none := "https://127.0.0.1:1/", admissionv1.SideEffectClassNone
	hook := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "gated"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "gated.gated.test", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none,
			ClientConfig: admissionv1.WebhookClientConfig{URL: &nobody},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{"gated.test"}, APIVersions: []string{"v1"}, Resources: []string{"gateds"}},
			}},
		}},
	}
	if err := c.Create(ctx, hook); err != nil {
		t.Fatal(err)
	}
	probe := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "probe", "namespace": "default"}}}
	probe.SetAPIVersion("gated.test/v1")
	probe.SetKind("Gated")
	key := kube.Key{Namespace: "default", Name: "probe"}
	// The API server takes a moment to notice a new webhook. The gate is closed only then.
	for closed := false; !closed; {
		err := c.Create(ctx, probe.DeepCopy(), client.DryRunAll)
		closed = apierrors.IsInternalError(err)
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if err := c.DryRunAdmission(short, probe, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v while the webhook does not answer", err)
	}
	short, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if err := c.UntilWebhooksAnswer(short, probe, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v while the webhook does not answer", err)
	}
	done := make(chan error, 2)
	go func() { done <- c.DryRunAdmission(ctx, probe, nil) }()
	go func() { done <- c.UntilWebhooksAnswer(ctx, probe, nil) }()
	if err := c.WithWatch.Delete(ctx, hook); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if there, err := c.Exists(ctx, probe.GroupVersionKind(), key); err != nil || there {
		t.Errorf("a dry run made the object: %v, %v", there, err)
	}
}

// slowAtFirst holds the first request with this method and path suffix until its caller gives up.
type slowAtFirst struct {
	next           http.RoundTripper
	method, suffix string
	once           sync.Once
}

func (s *slowAtFirst) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	held := false
	if req.Method == s.method && strings.HasSuffix(req.URL.Path, s.suffix) {
		s.once.Do(func() {
			held = true
			<-req.Context().Done()
		})
	}
	if held {
		return nil, req.Context().Err()
	}
	return s.next.RoundTrip(req)
}

// establishedOnABusyMachine: the time until a CRD is touched ends in the middle of a request. The wait must go on.
func establishedOnABusyMachine(t *testing.T, kubeconfig []byte) {
	onABusyMachine(t, kubeconfig, &slowAtFirst{method: http.MethodGet, suffix: "/customresourcedefinitions"}, "Slow")
}

// appliedOnABusyMachine: an API server that has just answered takes longer for an apply than the timeout of a request. Apply must try
// again.
func appliedOnABusyMachine(t *testing.T, kubeconfig []byte) {
	onABusyMachine(t, kubeconfig, &slowAtFirst{method: http.MethodPatch, suffix: ".busy.example.com"}, "Busy")
}

// onABusyMachine applies a CRD of this kind through slow.
func onABusyMachine(t *testing.T, kubeconfig []byte, slow *slowAtFirst, kind string) {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		slow.next = next
		return slow
	})
	c, err := kube.NewForConfig(config, kube.Options{Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := kube.ParseYAML(crdManifest(kind, strings.ToLower(kind)+".example.com"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Apply(t.Context(), objects, kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
}
