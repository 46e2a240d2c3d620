//go:build integration

package capi

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMove(t *testing.T) {
	from, source, repository := newManagement(t)
	to, _, _ := newManagement(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	providers := resolve(t, repository, allProviders)
	if _, err := from.Install(ctx, repository, InstallOptions{Providers: providers}); err != nil {
		t.Fatal(err)
	}
	newCluster(t, source, "team-a", "alpha")
	newCluster(t, source, "team-b", "beta")
	if _, err := MovePreflight(ctx, from, to); err == nil || !strings.Contains(err.Error(), "the target has no infrastructure provider docker") {
		t.Errorf("got %v for a target without providers", err)
	}
	if _, err := to.Install(ctx, repository, InstallOptions{Providers: providers}); err != nil {
		t.Fatal(err)
	}
	t.Run("refuses what cannot be moved", func(t *testing.T) {
		beta := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "beta"}}
		pause := func(value string) {
			t.Helper()
			if err := source.Patch(ctx, beta, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"paused":`+value+`}}`))); err != nil {
				t.Fatal(err)
			}
		}
		pause("true")
		defer pause("null")
		if _, err := MovePreflight(ctx, from, to); err == nil || !strings.Contains(err.Error(), "Cluster team-b/beta is paused") {
			t.Errorf("got %v for a paused Cluster", err)
		}
	})
	plan, err := MovePreflight(ctx, from, to)
	if err != nil || !slices.Equal(plan.Namespaces, []string{"team-a", "team-b"}) || len(plan.Clusters) != 2 {
		t.Fatalf("%+v, %v", plan, err)
	}
	var details []string
	if err := Move(ctx, from, to, plan, func(s string) { details = append(details, s) }); err != nil {
		t.Fatal(err)
	}
	if len(details) == 0 || !strings.HasPrefix(details[0], "namespace team-a (1 of 2): ") {
		t.Errorf("details %v", details)
	}
	left, err := from.Clusters(ctx)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	arrived, err := to.Clusters(ctx)
	if err != nil || len(arrived) != 2 || arrived[0].Paused || len(arrived[0].Machines) != 1 {
		t.Errorf("arrived: %+v, %v", arrived, err)
	}
}
