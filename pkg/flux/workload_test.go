package flux

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// part is a Kustomization that brings Flux to the cluster of a namespace.
func part(t *testing.T, objects kube.Objects, namespace, name, label, status, message string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(kustomizationKind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetGeneration(1)
	if label != "" {
		obj.SetLabels(map[string]string{WorkloadLabel: label})
	}
	set(t, obj, int64(1), "status", "observedGeneration")
	ready(t, obj, status, "Test", message)
	objects[kube.Key{Namespace: namespace, Name: name}] = obj
	return obj
}

// Of each cluster the part is named that holds the others; what is suspended, left out, or not for a workload cluster, holds nothing.
func TestUnreadyWorkloads(t *testing.T) {
	objects := kube.Objects{}
	part(t, objects, "up", "up-flux", "components", "True", "")
	part(t, objects, "up", "up-sync", "sync", "True", "")
	part(t, objects, "down", "down-sync", "sync", "False", "dependency is not ready")
	part(t, objects, "down", "down-flux", "components", "False", "no kubeconfig yet")
	part(t, objects, "late", "late-flux", "components", "True", "")
	part(t, objects, "late", "late-sync", "sync", "False", "apps are not Ready")
	part(t, objects, "flux-system", "other", "", "False", "broken")
	set(t, part(t, objects, "paused", "paused-sync", "sync", "False", "broken"), true, "spec", "suspend")
	set(t, part(t, objects, "of-a-paused-environment", "late-flux", "components", "False", "no kubeconfig yet"), true, "spec", "suspend")
	part(t, objects, "of-a-paused-environment", "late-sync", "sync", "False", "no kubeconfig yet")
	part(t, objects, "held", "held-flux", "components", "False", "no kubeconfig yet")
	got := map[string]string{}
	for _, u := range unreadyWorkloads(objects, []string{"held"}) {
		got[u.Key.String()] = u.Reason
	}
	want := map[string]string{"down/down-flux": "no kubeconfig yet", "late/late-sync": "apps are not Ready"}
	for key, reason := range want {
		if !strings.Contains(got[key], reason) {
			t.Errorf("%s: %q, want %q", key, got[key], reason)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A fleet is synced whether its workload clusters are up or not: they take their time.
func TestSyncedWithoutWorkloads(t *testing.T) {
	w := testWorld(t)
	if missing := w.pending(applied); len(missing) > 0 {
		t.Fatalf("the world is not synced to begin with: %v", missing)
	}
	for key, obj := range w[kustomizationKind] {
		if key == systemKey {
			continue
		}
		ready(t, obj, "False", "Test", "the API server does not answer")
		if missing := w.pending(applied); len(missing) == 0 {
			continue // nothing that the system applied
		}
		labels := obj.GetLabels()
		obj.SetLabels(map[string]string{WorkloadLabel: "components"})
		if missing := w.pending(applied); len(missing) > 0 {
			t.Errorf("%s: init would wait for a workload cluster: %v", key, missing)
		}
		obj.SetLabels(labels)
		ready(t, obj, "True", "Test", "")
		return
	}
	t.Error("no Kustomization that is waited for was found")
}
