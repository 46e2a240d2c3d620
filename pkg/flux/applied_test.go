package flux

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// One environment is judged by what it applied, whatever becomes of the others.
func TestBelow(t *testing.T) {
	demo := kube.Key{Namespace: "demo", Name: "demo"}
	w := testWorld(t)
	if got := w.applied("clusters-dev"); commitOf(got) != applied {
		t.Errorf("applied %q", got)
	}
	if missing, _ := w.below("clusters-dev", applied); len(missing) != 0 {
		t.Errorf("healthy: %v", missing)
	}
	ready(t, w[kustomizationKind][systemKey], "False", "BuildFailed", "somebody else's")
	if missing, _ := w.below("clusters-dev", applied); len(missing) != 0 {
		t.Errorf("another one fails: %v", missing)
	}
	for name, tc := range map[string]struct{ environment, commit, want string }{
		"another commit": {"clusters-dev", newer, "it has applied 111111111111, not 222222222222"},
		"not there":      {"clusters-prod", applied, "it does not exist"},
	} {
		if missing, _ := w.below(tc.environment, tc.commit); len(missing) != 1 || missing[0].Reason != tc.want {
			t.Errorf("%s: %v", name, missing)
		}
	}
	ready(t, w[helmReleaseKind][demo], "False", "InstallFailed", "no such chart")
	if missing, _ := w.below("clusters-dev", applied); len(missing) != 1 || missing[0].Key != demo {
		t.Errorf("a release fails: %v", missing)
	}
}

// What Flux applies to the workload clusters of an environment counts, too, and for each cluster only what the others wait for.
func TestBelowWorkloads(t *testing.T) {
	w := testWorld(t)
	dev := w[kustomizationKind][kube.Key{Namespace: Namespace, Name: "clusters-dev"}]
	revision, _, _ := unstructured.NestedString(dev.Object, "status", "lastAppliedRevision")
	entries, _, _ := unstructured.NestedSlice(dev.Object, "status", "inventory", "entries")
	parts := map[string]*unstructured.Unstructured{}
	for _, name := range []string{"components", "sync"} {
		k := dev.DeepCopy()
		k.SetNamespace("demo")
		k.SetName("demo-" + name)
		k.SetLabels(map[string]string{WorkloadLabel: name})
		set(t, k, map[string]any{"secretRef": map[string]any{"name": "demo-kubeconfig"}}, "spec", "kubeConfig")
		set(t, k, Namespace, "spec", "sourceRef", "namespace")
		entries = append(entries, map[string]any{"id": "demo_demo-" + name + "_kustomize.toolkit.fluxcd.io_Kustomization", "v": "v1"})
		w[kustomizationKind][kube.RefOf(k).Key] = k
		parts[name] = k
	}
	set(t, dev, entries, "status", "inventory", "entries")
	if missing, _ := w.below("clusters-dev", applied); len(missing) != 0 {
		t.Fatalf("healthy: %v", missing)
	}
	ready(t, parts["sync"], "False", "HealthCheckFailed", "the apps are not Ready")
	if missing, _ := w.below("clusters-dev", applied); len(missing) != 1 || !strings.Contains(missing[0].Reason, "the apps are not Ready") {
		t.Errorf("the apps of a cluster fail: %v", missing)
	}
	set(t, parts["components"], "main@sha1:"+newer, "status", "lastAppliedRevision")
	if missing, _ := w.below("clusters-dev", applied); len(missing) != 1 || missing[0].Name != "demo-components" {
		t.Errorf("at another revision than %s: %v", revision, missing)
	}
	if missing := w.pending(applied); len(missing) != 0 {
		t.Errorf("init waits for workload clusters: %v", missing)
	}
}
