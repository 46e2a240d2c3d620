//go:build e2e

package handover

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// play does what controllers and kubelets would, until t ends: a Deployment has as many Pods as it wants, and says so once they are
// there, or gone.
func (s *side) play(ctx context.Context, t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			s.playDeployments(ctx, t)
		}
	}()
}

// playDeployments watches until the server ends the watch.
func (s *side) playDeployments(ctx context.Context, t testing.TB) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.host+"/apis/apps/v1/deployments?watch=true", http.NoBody)
	if err != nil {
		t.Error(err)
		return
	}
	response, err := s.http.Do(r)
	if err != nil {
		if ctx.Err() == nil {
			t.Errorf("%s: watch Deployments: %v", s.name, err)
		}
		return
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct{ Object appsv1.Deployment }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Errorf("%s: read a watch of Deployments: %v", s.name, err)
			return
		}
		// A conflict, or a Deployment that is gone: the next event says what has become of it. Where the disk is full, a new watch begins with
		// all.
		err := s.playDeployment(ctx, event.Object.Namespace, event.Object.Name)
		if hasCode(err, http.StatusInternalServerError) && strings.Contains(err.Error(), "database space exceeded") {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			return
		}
		if err != nil && ctx.Err() == nil && !hasCode(err, http.StatusConflict) && !hasCode(err, http.StatusNotFound) {
			t.Errorf("%s: play the Deployment %s: %v", s.name, event.Object.Name, err)
		}
	}
}

// playDeployment reads the Deployment anew, because the watch's event may be older than a restore. It never runs during a restore.
func (s *side) playDeployment(ctx context.Context, namespace, name string) error {
	s.playing.Lock()
	defer s.playing.Unlock()
	d := &appsv1.Deployment{}
	path := "/apis/apps/v1/namespaces/" + namespace + "/deployments/" + name
	if err := s.request(ctx, http.MethodGet, path, nil, d); err != nil {
		return err
	}
	wanted := wantedReplicas(d)
	if rolledOut(d) {
		return nil
	}
	pods := "/api/v1/namespaces/" + d.Namespace + "/pods"
	var there corev1.PodList
	if err := s.request(ctx, http.MethodGet, pods+"?labelSelector=app%3D"+d.Name, nil, &there); err != nil {
		return err
	}
	have := int32(0)
	for i := range there.Items {
		if have < wanted {
			have++
			continue
		}
		if err := s.request(ctx, http.MethodDelete, pods+"/"+there.Items[i].Name+"?gracePeriodSeconds=0", nil, nil); err != nil {
			return err
		}
	}
	for ; have < wanted; have++ {
		pod := corev1.Pod{Spec: *d.Spec.Template.Spec.DeepCopy()}
		pod.Name, pod.Labels = fmt.Sprintf("%s-%d", d.Name, have), d.Spec.Template.Labels
		body, err := json.Marshal(&pod)
		if err != nil {
			return err
		}
		if err := s.request(ctx, http.MethodPost, pods, body, nil); err != nil {
			return err
		}
	}
	status := appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: wanted, UpdatedReplicas: wanted, ReadyReplicas: wanted, AvailableReplicas: wanted,
	}
	if wanted > 0 {
		status.Conditions = []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		}
	}
	d.Status = status
	body, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return s.request(ctx, http.MethodPut, path+"/status", body, nil)
}

func wantedReplicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas != nil {
		return *d.Spec.Replicas
	}
	return 1
}

// rolledOut tells whether a Deployment's Pods are as many as it wants.
func rolledOut(d *appsv1.Deployment) bool {
	wanted := wantedReplicas(d)
	return d.Status.ObservedGeneration == d.Generation && d.Status.Replicas == wanted && d.Status.AvailableReplicas == wanted
}

// settle waits until what play does is done.
func (s *side) settle(ctx context.Context, t testing.TB) {
	t.Helper()
	until(ctx, t, "the Deployments of "+s.name, func() bool {
		var list appsv1.DeploymentList
		s.must(ctx, t, http.MethodGet, "/apis/apps/v1/deployments", nil, &list)
		for i := range list.Items {
			if !rolledOut(&list.Items[i]) {
				return false
			}
		}
		return true
	})
}
