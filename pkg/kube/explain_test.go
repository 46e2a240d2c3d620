package kube

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestReason(t *testing.T) {
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"none":    {nil, ""},
		"healthy": {[]metav1.Condition{{Type: "Ready", Status: "True", Message: "applied"}, {Type: "Stalled", Status: "False"}}, ""},
		"stalled first": {[]metav1.Condition{
			{Type: "Ready", Status: "False", Reason: "Progressing"}, {Type: "Stalled", Status: "True", Reason: "Invalid", Message: "bad path"},
		}, "Invalid: bad path"},
		"message only": {
			[]metav1.Condition{{Type: "Available", Status: "False", Message: "* no machine\n* no node"}},
			"* no machine * no node",
		},
		"nothing to go by": {[]metav1.Condition{{Type: "Ready", Status: "Unknown"}}, "condition Ready is Unknown"},
		"negative sense":   {[]metav1.Condition{{Type: "Deleting", Status: "False", Reason: "NotDeleting"}}, ""},
		"reason not doubled": {
			[]metav1.Condition{{Type: "Ready", Status: "False", Reason: "Failed", Message: "Failed to pull"}},
			"Failed to pull",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Reason(tc.conditions); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	long := Reason([]metav1.Condition{{Type: "Ready", Status: "False", Message: strings.Repeat("ä", 5000)}})
	if n := len([]rune(long)); n != maxReason {
		t.Errorf("a long message became %d characters, want %d", n, maxReason)
	}
}

// Controllers repeat the URLs that they ask, with the passwords in them.
func TestReasonsWithoutCredentials(t *testing.T) {
	const canary = "canary-7f3a9c51e2"
	message := "unable to clone 'https://git:" + canary + "@git.example.com/fleet.git': authentication required"
	obj := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Ready", "status": "False", "reason": "GitOperationFailed", "message": message},
	}}}}
	conditions := Conditions(obj)
	for _, said := range []string{conditions[0].Message, Reason(conditions), shorten(strings.Repeat("x ", 300) + message)} {
		if strings.Contains(said, canary) || !strings.Contains(said, "@git.example.com/fleet.git': authentication required") {
			t.Errorf("it says %s", said)
		}
	}
}

func TestPodTrouble(t *testing.T) {
	pod := func(status corev1.PodStatus) *corev1.Pod { return &corev1.Pod{Status: status} }
	container := func(state, last corev1.ContainerState) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "manager", State: state, LastTerminationState: last}}}
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"starting": {pod(container(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
			corev1.ContainerState{})), ""},
		"image": {
			pod(container(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such tag"}},
				corev1.ContainerState{})),
			"container manager: ImagePullBackOff: no such tag",
		},
		"crash loop": {pod(container(
			corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 5m0s"}},
			corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 1, Reason: "Error",
				Message: "starting\nunable to find CRD\n",
			}},
		)), "container manager: CrashLoopBackOff: exit code 1: unable to find CRD"},
		"killed": {
			pod(container(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}},
				corev1.ContainerState{})),
			"container manager: OOMKilled, exit code 137",
		},
		"unschedulable": {
			pod(corev1.PodStatus{Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: "False",
				Message: "0/1 nodes are available",
			}}}),
			"not scheduled: 0/1 nodes are available",
		},
		"evicted": {pod(corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on disk"}), "failed: Evicted low on disk"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := podTrouble(tc.pod); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestDeploymentReady(t *testing.T) {
	deployment := func(generation, observed, replicas, updated, available int64, condition string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": "a", "generation": generation},
			"spec":     map[string]any{"replicas": replicas},
			"status": map[string]any{
				"observedGeneration": observed, "updatedReplicas": updated, "availableReplicas": available,
				"conditions": []any{map[string]any{"type": "Available", "status": condition}},
			},
		}}
	}
	for name, tc := range map[string]struct {
		obj  *unstructured.Unstructured
		want bool
	}{
		"absent":             {nil, false},
		"rolled out":         {deployment(2, 2, 1, 1, 1, "True"), true},
		"not observed yet":   {deployment(2, 1, 1, 1, 1, "True"), false},
		"old pods serve":     {deployment(2, 2, 1, 0, 1, "True"), false},
		"none available":     {deployment(2, 2, 1, 1, 0, "False"), false},
		"scaled to zero":     {deployment(2, 2, 0, 0, 0, "True"), true},
		"one of two updated": {deployment(2, 2, 2, 1, 2, "True"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DeploymentReady(tc.obj); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestIsUnanswered(t *testing.T) {
	gk := schema.GroupKind{Group: "cert-manager.io", Kind: "Issuer"}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"webhook fails":  {apierrors.NewInternalError(errors.New("failed calling webhook")), true},
		"CRD unknown":    {&meta.NoKindMatchError{GroupKind: gk}, true},
		"overloaded":     {apierrors.NewTooManyRequests("busy", 1), true},
		"webhook denies": {apierrors.NewForbidden(schema.GroupResource{}, "a", errors.New("denied")), false},
		"invalid":        {apierrors.NewInvalid(gk, "a", nil), false},
		"conflict":       {apierrors.NewConflict(schema.GroupResource{}, "a", errors.New("owned by kubectl")), false},
		"other":          {errors.New("failed calling webhook"), false}, // the text alone does not count
	} {
		t.Run(name, func(t *testing.T) {
			if got := isUnanswered(fmt.Errorf("apply: %w", tc.err)); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
