//go:build integration

package leaving_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/leaving"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// The namespace of a cluster that is gone stays where somebody has put another one into it.
func TestNamespaceOfARemovedClusterIsKeptForAnother(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	e.WithFlux(ctx, t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "alpha", Labels: map[string]string{flux.AppliedBy: "clusters-dev"}}}
	if err := e.Client.Create(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	if err := e.Client.Create(ctx, standingtest.NewWorkload("alpha", "another")); err != nil {
		t.Fatal(err)
	}
	err := leaving.AwaitRemoval(ctx, e.Deps, leaving.RemovalOptions{
		Client: e.Client, Cluster: fleetrepo.Cluster{Name: "alpha"},
	})
	if err == nil || !strings.Contains(err.Error(), "the namespace alpha is kept") || !strings.Contains(err.Error(), "alpha/another") {
		t.Errorf("got %v", err)
	}
	there := &corev1.Namespace{}
	if err := e.Client.Get(ctx, kube.Key{Name: "alpha"}, there); err != nil || !there.DeletionTimestamp.IsZero() {
		t.Errorf("the namespace: %v, %v", there.DeletionTimestamp, err)
	}
}
