//go:build integration

package leaving_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/leaving"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// keptOff makes a Kustomization that draining a cluster has suspended.
func keptOff(ctx context.Context, t *testing.T, e *standingtest.Cluster, cluster string) {
	t.Helper()
	worksOn(ctx, t, e, cluster, "on-"+cluster, false)
	if _, err := flux.NewSystem(e.Client).KeepOff(ctx, kube.Key{Namespace: "team-a", Name: cluster + "-kubeconfig"}); err != nil {
		t.Fatal(err)
	}
	if !isSuspended(ctx, t, e, "on-"+cluster) {
		t.Fatal("it is not suspended")
	}
}

// worksOn makes a Kustomization on the management cluster that works on a workload cluster.
func worksOn(ctx context.Context, t *testing.T, e *standingtest.Cluster, cluster, name string, suspended bool) {
	t.Helper()
	k := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": map[string]any{"namespace": "team-a", "name": name},
		"spec": map[string]any{
			"interval": "10m", "prune": true, "suspend": suspended, "sourceRef": map[string]any{"kind": "GitRepository", "name": "none"},
			"kubeConfig": map[string]any{"secretRef": map[string]any{"name": cluster + "-kubeconfig"}},
		},
	}}
	if err := e.Client.Create(ctx, k); err != nil {
		t.Fatal(err)
	}
}

func isSuspended(ctx context.Context, t *testing.T, e *standingtest.Cluster, name string) bool {
	t.Helper()
	k := &unstructured.Unstructured{}
	k.SetAPIVersion("kustomize.toolkit.fluxcd.io/v1")
	k.SetKind("Kustomization")
	if err := e.Client.Get(ctx, kube.Key{Namespace: "team-a", Name: name}, k); err != nil {
		t.Fatal(err)
	}
	is, _, _ := unstructured.NestedBool(k.Object, "spec", "suspend")
	return is
}

// A cluster is drained before it is removed: what it has in its cloud goes, and Flux does not make it anew until it is told to.
func TestDrainCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	target := e.WithFlux(ctx, t)
	workload := e.WithBalancer(ctx, t)
	worksOn(ctx, t, e, "alpha", "apps", false)
	worksOn(ctx, t, e, "alpha", "paused", true)
	web := kube.Key{Namespace: "default", Name: "web"}
	untouched := func(t *testing.T) {
		t.Helper()
		if err := workload.Get(ctx, web, &corev1.Service{}); err != nil {
			t.Errorf("the Service: %v", err)
		}
		if isSuspended(ctx, t, e, "apps") {
			t.Error("Flux is suspended")
		}
	}
	options := leaving.DrainOptions{Target: target, Cluster: "alpha", DryRun: true}

	planned, err := leaving.Drain(ctx, e.Deps, options)
	if err != nil {
		t.Fatal(err)
	}
	if len(planned.Items) != 1 || planned.Items[0].Object != "Service default/web" {
		t.Errorf("%+v", planned.Items)
	}
	untouched(t)
	options.DryRun = false
	asked := errors.New("asked")
	options.Confirm = func(*leaving.DrainResult) error { return asked }
	if _, err := leaving.Drain(ctx, e.Deps, options); !errors.Is(err, asked) {
		t.Errorf("got %v", err)
	}
	untouched(t)
	options.Confirm = nil

	t.Run("what manages clusters is refused", func(t *testing.T) {
		child := *e
		child.Client = workload
		child.MakeCluster(ctx, t)
		if _, err := leaving.Drain(ctx, e.Deps, options); err == nil || !strings.Contains(err.Error(), "manages clusters itself: team-a/alpha") {
			t.Errorf("got %v", err)
		}
		untouched(t)
		if err := workload.WithWatch.Delete(ctx, standingtest.NewWorkload("team-a", "alpha")); err != nil {
			t.Fatal(err)
		}
	})
	for range 2 { // again, there is nothing to do
		done, err := leaving.Drain(ctx, e.Deps, options)
		if err != nil || done.Outcome != "drained" {
			t.Fatalf("%+v, %v", done, err)
		}
	}
	if err := workload.Get(ctx, web, &corev1.Service{}); !kube.IsAbsent(err) {
		t.Errorf("the Service: %v", err)
	}
	if !isSuspended(ctx, t, e, "apps") {
		t.Error("Flux on the management cluster goes on")
	}
	options.Cancel = true
	if _, err := leaving.Drain(ctx, e.Deps, options); err != nil {
		t.Fatal(err)
	}
	if isSuspended(ctx, t, e, "apps") || !isSuspended(ctx, t, e, "paused") {
		t.Error("it is not as before")
	}
	e.StandsUntouched(ctx, t, "alpha")

	if err := e.Client.Create(ctx, standingtest.NewWorkload("team-a", "dead")); err != nil { // it has no kubeconfig
		t.Fatal(err)
	}
	if _, err := leaving.Drain(ctx, e.Deps, leaving.DrainOptions{Target: target, Cluster: "dead"}); diag.Code(err) != diag.ExitNotReady ||
		!strings.Contains(diag.Hint(err), "orphans") {
		t.Errorf("got %v, hint %q", err, diag.Hint(err))
	}
	keptOff(ctx, t, e, "dead") // as when its API server dies after it was drained
	if _, err := leaving.Drain(ctx, e.Deps, leaving.DrainOptions{
		Target: target, Cluster: "dead",
		Cancel: true,
	}); diag.Code(err) != diag.ExitNotReady {
		t.Errorf("got %v", err)
	}
	if isSuspended(ctx, t, e, "on-dead") {
		t.Error("Flux on the management cluster is suspended for ever")
	}
	going := &clusterv1.Cluster{}
	if err := e.Client.Get(ctx, kube.Key{Namespace: "team-a", Name: "alpha"}, going); err != nil {
		t.Fatal(err)
	}
	going.Finalizers = []string{"cluster.cluster.x-k8s.io"}
	if err := e.Client.Update(ctx, going); err != nil {
		t.Fatal(err)
	}
	if err := e.Client.WithWatch.Delete(ctx, going); err != nil {
		t.Fatal(err)
	}
	options.Cancel = false
	if _, err := leaving.Drain(ctx, e.Deps, options); err == nil || !strings.Contains(err.Error(), "is being deleted") {
		t.Errorf("got %v", err)
	}
}
