//go:build integration

package kube_test

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

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
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "dep-broken-x", Labels: d.Spec.Template.Labels},
		Spec:       d.Spec.Template.Spec,
	}
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
