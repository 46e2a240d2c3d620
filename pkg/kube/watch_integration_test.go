//go:build integration

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

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
	if err := kube.WaitGone(t.Context(), c, configMap.GroupVersion().WithKind("Nonsuch"), key); err != nil {
		t.Errorf("wait for an object of an unknown kind to go: %v", err)
	}
}

// watchSurvivesCompaction checks that a watch survives many changes to other objects and namespaces.
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
