//go:build integration

package leaving_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
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

// A cluster whose own record names another restore of the same snapshot is not deleted here, and one that does not answer can be.
func TestRemovalOfAnothersClusterIsRefused(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	target := e.WithFlux(ctx, t)
	key := kube.Key{Namespace: "team-a", Name: "alpha"}
	asks := func(refused bool) {
		t.Helper()
		refusal, err := leaving.RefuseAnothers(ctx, target, e.Client, key)
		if err != nil || (refusal != nil) != refused {
			t.Errorf("refused: %v, %v; want %t", refusal, err, refused)
		}
		if refused && (!strings.Contains(refusal.Error(), "team-a/alpha is managed by eu") ||
			!strings.Contains(diag.Hint(refusal), "fleetctl cluster detach team-a/alpha")) {
			t.Errorf("it says %v; %s", refusal, diag.Hint(refusal))
		}
	}
	asks(false) // it does not exist
	if err := e.Client.Create(ctx, standingtest.NewWorkload(key.Namespace, key.Name)); err != nil {
		t.Fatal(err)
	}
	asks(false) // it has no kubeconfig
	workload, kubeconfig := kubetest.Start(t)
	if err := e.Client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "alpha-kubeconfig"}, Data: map[string][]byte{"value": kubeconfig},
	}); err != nil {
		t.Fatal(err)
	}
	asks(false) // it has no record
	owner := capi.Owner{Fleet: target.Record.FleetID, ManagementCluster: "eu", UID: "another", Epoch: 1}
	if err := workload.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: handover.OwnerKey.Namespace, Name: handover.OwnerKey.Name},
		Data:       map[string]string{"owner": owner.String()},
	}); err != nil {
		t.Fatal(err)
	}
	asks(true)
}
