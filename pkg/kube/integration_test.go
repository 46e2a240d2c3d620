//go:build integration

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

var configMap = corev1.SchemeGroupVersion.WithKind("ConfigMap")

func TestAPIServer(t *testing.T) {
	c, kubeconfig := kubetest.Start(t)
	t.Run("established on a busy machine", func(t *testing.T) {
		t.Parallel()
		establishedOnABusyMachine(t, kubeconfig)
	})
	for name, test := range map[string]func(*testing.T, *kube.Client){
		"apply in stages":      applyInStages,
		"apply conflict":       applyConflict,
		"apply tries all":      applyTriesAll,
		"apply waits for CRD":  applyWaitsForCRD,
		"delete":               deleteObjects,
		"wait for":             waitFor,
		"watch survives":       watchSurvivesCompaction,
		"deployments":          deployments,
		"deployments time out": deploymentsTimeOut,
		"webhook gate":         webhookGate,
		"scheme and version":   schemeAndVersion,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

// crdManifest is a CRD for kind in group with an object of it, and a namespace: in the wrong order.
func crdManifest(kind, group string) []byte {
	plural := strings.ToLower(kind) + "s"
	return fmt.Appendf(nil, `
apiVersion: %[2]s/v1
kind: %[1]s
metadata: {name: one, namespace: %[3]s-ns}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[3]s.%[2]s}
spec:
  group: %[2]s
  names: {kind: %[1]s, plural: %[3]s}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: %[3]s-ns}
`, kind, group, plural)
}

func applyInStages(t *testing.T, c *kube.Client) {
	manifest := crdManifest("Stage", "stages.test")
	first, err := c.ApplyYAML(t.Context(), manifest, kube.ApplyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.ApplyYAML(t.Context(), manifest, kube.ApplyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range first {
		if first[i].Action != kube.Created || again[i].Action != kube.Unchanged {
			t.Errorf("%s: first %s, then %s", first[i].Ref, first[i].Action, again[i].Action)
		}
	}
	if len(first) != 3 || kube.Changed(again) {
		t.Errorf("%d objects, changed again: %v", len(first), kube.Changed(again))
	}
	changed := strings.Replace(string(manifest), "name: one,", "name: one, labels: {a: b},", 1)
	third, err := c.ApplyYAML(t.Context(), []byte(changed), kube.ApplyOptions{})
	if err != nil || third[0].Action != kube.Configured || third[1].Action != kube.Unchanged {
		t.Errorf("after a change: %v, %v", third, err)
	}
}

func applyConflict(t *testing.T, c *kube.Client) {
	manifest := func(value string) []byte {
		return fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conflict, namespace: default}\ndata: {key: %s}\n", value)
	}
	if _, err := c.ApplyYAML(t.Context(), manifest("theirs"), kube.ApplyOptions{FieldManager: "somebody-else"}); err != nil {
		t.Fatal(err)
	}
	_, err := c.ApplyYAML(t.Context(), manifest("ours"), kube.ApplyOptions{})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "ConfigMap default/conflict") {
		t.Errorf("got %v; want a conflict that names the object", err)
	}
	if _, err := c.ApplyYAML(t.Context(), manifest("ours"), kube.ApplyOptions{ForceConflicts: true}); err != nil {
		t.Error(err)
	}
}

func applyTriesAll(t *testing.T, c *kube.Client) {
	changes, err := c.ApplyYAML(t.Context(), []byte(`
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

// applyWaitsForCRD applies a custom resource whose CRD comes later.
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
	_, err = c.ApplyYAML(ctx, never[:strings.Index(string(never), "---")], kube.ApplyOptions{})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "Never") {
		t.Errorf("got %v; want a timeout that names the object", err)
	}
}

func deleteObjects(t *testing.T, c *kube.Client) {
	objects, err := kube.ParseYAML([]byte(`
{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: default, finalizers: [fleetctl.dev/test]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: free, namespace: default}}
---
{apiVersion: nonsuch.test/v1, kind: Nonsuch, metadata: {name: absent}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Apply(t.Context(), objects[:2], kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := c.Delete(ctx, objects, kube.DeleteOptions{Wait: true}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v while a finalizer holds the object", err)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := c.Patch(t.Context(), objects[0], patch); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), objects, kube.DeleteOptions{Wait: true}); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"held", "free"} {
		if there, err := c.Exists(t.Context(), configMap, kube.Key{Namespace: "default", Name: name}); err != nil || there {
			t.Errorf("%s exists: %v, %v", name, there, err)
		}
	}
}

func waitFor(t *testing.T, c *kube.Client) {
	key := kube.Key{Namespace: "default", Name: "awaited"}
	seen := make(chan bool, 10)
	done := make(chan error, 1)
	go func() {
		done <- c.WaitFor(t.Context(), configMap, key, func(obj *unstructured.Unstructured) (bool, error) {
			seen <- obj != nil
			return obj != nil && obj.GetLabels()["ready"] == "yes", nil
		})
	}()
	if <-seen {
		t.Error("the object was there before it was made")
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := c.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	if !<-seen {
		t.Error("the watch missed that the object was made")
	}
	cm.Labels = map[string]string{"ready": "yes"}
	if err := c.Update(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}

	broken := errors.New("it will never be")
	err := c.WaitFor(t.Context(), configMap, key, func(*unstructured.Unstructured) (bool, error) { return false, broken })
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "ConfigMap default/awaited") {
		t.Errorf("got %v", err)
	}
	if err := c.WaitGone(t.Context(), configMap.GroupVersion().WithKind("Nonsuch"), key); err != nil {
		t.Errorf("wait for an object of an unknown kind to go: %v", err)
	}
}

// watchSurvivesCompaction keeps a watch over many changes to other objects and namespaces.
func watchSurvivesCompaction(t *testing.T, c *kube.Client) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	labels := map[string]string{"watched": "many"}
	most := 0
	started := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		first := true
		done <- c.Watch(ctx, configMap, kube.Selection{Namespace: "default", Labels: labels}, func(objects kube.Objects) (bool, error) {
			if first {
				first = false
				close(started)
			}
			most = max(most, len(objects))
			return most == 50 && len(objects) == 0, nil
		})
	}()
	<-started
	for i := range 50 {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("many-%d", i), Labels: labels}}
		if err := c.Create(ctx, cm); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("default"), client.MatchingLabels(labels)); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("saw at most %d of 50: %v", most, err)
	}
}

func newDeployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "example.com/a"}}},
			},
		},
	}
}

func deployments(t *testing.T, c *kube.Client) {
	keys := []kube.Key{{Namespace: "default", Name: "dep-a"}, {Namespace: "default", Name: "dep-b"}}
	details := make(chan string, 10)
	done := make(chan error, 1)
	go func() { done <- c.WaitDeploymentsReady(t.Context(), keys, func(s string) { details <- s }) }()
	if got := <-details; got != "waiting for dep-a, dep-b" {
		t.Errorf("detail %q", got)
	}
	for _, key := range keys {
		d := newDeployment(key.Name)
		if err := c.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
		}
		if err := c.Status().Update(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if key == keys[0] {
			if got := <-details; got != "waiting for dep-b" {
				t.Errorf("detail %q", got)
			}
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func deploymentsTimeOut(t *testing.T, c *kube.Client) {
	d := newDeployment("dep-broken")
	if err := c.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "dep-broken-x", Labels: d.Spec.Template.Labels}, Spec: d.Spec.Template.Spec}
	if err := c.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"},
	}}}
	if err := c.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := c.WaitDeploymentsReady(ctx, []kube.Key{{Namespace: "default", Name: "dep-broken"}, {Namespace: "default", Name: "dep-absent"}}, nil)
	var unready kube.NotReadyError
	if !errors.As(err, &unready) || len(unready) != 2 || !errors.Is(err, context.DeadlineExceeded) || diag.Code(err) != diag.ExitNotReady {
		t.Fatalf("got %v", err)
	}
	if want := "it does not exist"; unready[0].Reason != want {
		t.Errorf("%s: %q, want %q", unready[0].Ref, unready[0].Reason, want)
	}
	if want := "pod dep-broken-x: container a: ImagePullBackOff: not found"; unready[1].Reason != want {
		t.Errorf("%s: %q, want %q", unready[1].Ref, unready[1].Reason, want)
	}
}

// webhookGate proves that a dry run waits for a webhook that does not answer and returns when it is gone.
func webhookGate(t *testing.T, c *kube.Client) {
	ctx := t.Context()
	if _, err := c.ApplyYAML(ctx, crdManifest("Gated", "gated.test"), kube.ApplyOptions{}); err != nil {
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
	// The API server takes a moment to know of a new webhook; only then is the gate closed.
	for closed := false; !closed; {
		err := c.Create(ctx, probe.DeepCopy(), client.DryRunAll)
		closed = apierrors.IsInternalError(err)
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if err := c.DryRunAdmission(short, probe); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v while the webhook does not answer", err)
	}
	done := make(chan error, 1)
	go func() { done <- c.DryRunAdmission(ctx, probe) }()
	if err := c.WithWatch.Delete(ctx, hook); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if there, err := c.Exists(ctx, probe.GroupVersionKind(), key); err != nil || there {
		t.Errorf("a dry run made the object: %v, %v", there, err)
	}
}

func schemeAndVersion(t *testing.T, c *kube.Client) {
	version, err := c.ServerVersion(t.Context())
	if err != nil || !strings.HasPrefix(version, "v1.") {
		t.Errorf("version %q, %v", version, err)
	}
	wider, err := c.WithScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := wider.Get(t.Context(), kube.Key{Name: "default"}, &corev1.Namespace{}); err != nil {
		t.Error(err)
	}
	if _, err := c.SecretValue(t.Context(), kube.Key{Namespace: "default", Name: "nonsuch"}, "value"); !kube.IsAbsent(err) {
		t.Errorf("got %v for a Secret that does not exist", err)
	}
}

// slowAtFirst keeps the first question for CRDs until nobody waits for the answer any more.
type slowAtFirst struct {
	next http.RoundTripper
	once sync.Once
}

func (s *slowAtFirst) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	held := false
	if req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "/customresourcedefinitions") {
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

// establishedOnABusyMachine: the time after which a CRD is touched ends in the middle of a request, and the wait goes on.
func establishedOnABusyMachine(t *testing.T, kubeconfig []byte) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &slowAtFirst{next: next} })
	c, err := kube.NewForConfig(config, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := kube.ParseYAML(crdManifest("Slow", "slow.example.com"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Apply(t.Context(), objects, kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
}
