//go:build integration

package flux

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// playDeployments makes every Deployment available, until t ends.
func playDeployments(t *testing.T, c *kube.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	play := func(objects kube.Objects) (bool, error) {
		for _, obj := range objects {
			d := &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, d); err != nil {
				return false, err
			}
			if d.Status.ObservedGeneration == d.Generation {
				continue
			}
			d.Status = appsv1.DeploymentStatus{
				ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
				Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
			}
			if err := c.Status().Update(ctx, d); err != nil {
				return false, err // a conflict: a new watch begins with what there is now
			}
		}
		return false, nil
	}
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_ = c.Watch(ctx, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, kube.Selection{}, play)
		}
	}()
}

// TestInstallSurvivesAKillAtEachWrite kills installations of Flux before and after each of their writes. Until one comes to its end, none
// counts as installed.
func TestInstallSurvivesAKillAtEachWrite(t *testing.T) {
	c, kubeconfig := kubetest.Start(t)
	playDeployments(t, c)
	content, err := os.ReadFile(filepath.Join("testdata", "gotk-components.golden.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	components := &Components{Content: content}
	cut := kubetest.NewCut(t, kubeconfig)
	install := func(n int, applied bool) (ended bool) {
		t.Helper()
		ctx, client := cut.Begin(t.Context(), t, n, applied)
		err := NewSystem(client).Install(ctx, components, InstallOptions{})
		if _, ended = cut.Writes(); ended == (err == nil) {
			t.Fatalf("write %d, applied %t: ended %t: %v", n, applied, ended, err)
		}
		return ended
	}
	if there, err := NewSystem(c).Installed(t.Context(), components); err != nil || there {
		t.Fatalf("before all: installed %t, %v", there, err)
	}
	if other, err := NewSystem(c).OtherVersion(t.Context(), "v0.0.1"); err != nil || other != "" {
		t.Errorf("before all it runs in %q, %v", other, err)
	}
	kills := 0
	for n := 1; install(n, false) && install(n, true); n++ {
		kills = n
	}
	install(0, false)
	if kills == 0 {
		t.Error("nothing was killed")
	}
	t.Logf("killed at %d writes", kills)
	if there, err := NewSystem(c).Installed(t.Context(), components); err != nil || !there {
		t.Errorf("installed %t, %v", there, err)
	}
	report, err := NewSystem(c).Status(t.Context())
	if err != nil || report.Version == "" {
		t.Fatalf("%+v, %v", report, err)
	}
	for wanted, other := range map[string]string{"v0.0.1": report.Version, report.Version: ""} {
		if got, err := NewSystem(c).OtherVersion(t.Context(), wanted); err != nil || got != other {
			t.Errorf("wanted %s: it runs in %q, %v", wanted, got, err)
		}
	}
}
