//go:build e2e

package handover

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// TestTransferFromTwoClouds hands a Cluster over from a management cluster that has the providers of two clouds, to one that has the
// provider of this Cluster's cloud alone, and so no credentials of the other cloud. The whole work it cannot take over.
func TestTransferFromTwoClouds(t *testing.T) {
	ctx := t.Context()
	w := newWorld(t, func(s *seeder) {
		s.stockFleet(ctx, t)
		s.inventory(ctx, t, "capa-system", "aws", "InfrastructureProvider")
	})
	o := w.hands(t, nil)
	const lacks = "the target has no infrastructure provider aws"
	if _, err := handover.Look(ctx, o); err == nil || !strings.Contains(err.Error(), lacks) {
		t.Errorf("all of it: %v", err)
	}
	o.Select = []kube.Key{{Namespace: "team-a", Name: "alpha"}}
	if _, err := handover.Run(ctx, o); err != nil {
		t.Fatal(err)
	}
	source, target := w.source.read(ctx, t), w.target.read(ctx, t)
	for i, before := range w.sourceBefore {
		if belongsTo(before, "alpha") && (source[i] != nil || target[i] == nil) {
			t.Errorf("%s: at the source %t, at the target %t", i, source[i] != nil, target[i] != nil)
		}
	}
}

// TestIdentityWithoutWebhook: an identity whose CRD has no conversion webhook takes its Secret along, from the namespace that clusterctl's
// inventory has for its provider. So it is with AWSClusterStaticIdentity and VSphereClusterIdentity. No controller has made the identity an
// owner of the Secret yet.
func TestIdentityWithoutWebhook(t *testing.T) {
	ctx := t.Context()
	w := newWorld(t, func(s *seeder) {
		s.stockFleet(ctx, t)
		s.create(ctx, t, object("infrastructure.cluster.x-k8s.io/v1beta2", "AWSClusterStaticIdentity", "", "prod", map[string]any{
			"spec": map[string]any{"secretRef": "prod-identity", "allowedNamespaces": map[string]any{}},
		}))
		s.create(ctx, t, object("v1", "Secret", "capd-system", "prod-identity", map[string]any{"data": map[string]any{"AccessKeyID": "a2V5"}}))
		s.create(ctx, t, object("v1", "Secret", "capd-system", "somebody-elses", map[string]any{"data": map[string]any{"token": "a2V5"}}))
	})
	plan, err := handover.Look(ctx, w.hands(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	travels := func(name string) bool {
		return plan.Travels()(kube.Ref{
			GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Key: kube.Key{Namespace: "capd-system", Name: name},
		})
	}
	if !travels("prod-identity") || travels("somebody-elses") {
		t.Errorf("its Secret goes: %t, another one: %t", travels("prod-identity"), travels("somebody-elses"))
	}
}
