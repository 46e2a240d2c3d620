//go:build integration

package status

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// TestCrashLoopIsShownWithTheEndOfTheLog: one of Flux's controllers is in the state that the embedded host reports when a new version
// crashes with a long log. The text that status shows ends with the cause of the crash.
func TestCrashLoopIsShownWithTheEndOfTheLog(t *testing.T) {
	client, _ := kubetest.Start(t)
	var log strings.Builder
	for i := range 9 {
		fmt.Fprintf(&log, `{"level":"info","msg":"step %d of the way to the end, which is told at some length"}`+"\n", i)
	}
	const died, want = "cannot read the schema: it is of another version", "manager: ended with exit code 3 after 4 restarts: "
	labels := map[string]string{"app": "source-controller"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: flux.Namespace, Name: "source-controller", Labels: map[string]string{"app.kubernetes.io/part-of": "flux"},
		},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "example.com/source-controller:v2"}}},
			},
		},
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: flux.Namespace}}
	if err := client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	if err := client.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	now := metav1.NewTime(time.Now())
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, UnavailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "CrashLoopBackOff", Message: want + log.String() + died,
			LastUpdateTime: now, LastTransitionTime: now,
		}},
	}
	if err := client.Status().Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	r := Collect(t.Context(), Sources{Cluster: Cluster{Name: "mgmt", Host: "embedded", State: "running"}, Client: client})
	var shown bytes.Buffer
	if err := Tree(&shown, r, Style{}); err != nil {
		t.Fatal(err)
	}
	if r.Ready || !strings.Contains(shown.String(), "✗ Flux's source-controller: CrashLoopBackOff: "+want) ||
		!strings.Contains(shown.String(), died+"\n") {
		t.Errorf("status shows\n%s", shown.String())
	}
}
