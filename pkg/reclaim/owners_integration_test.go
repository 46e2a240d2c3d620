//go:build integration

package reclaim

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/ownership"
)

// An API server without Clusters owns nothing only if it is this fleet's management cluster, if it is complete, and if no operation is
// under way on it.
func TestOrphansOwners(t *testing.T) {
	client, _ := kubetest.Start(t)
	ctx := t.Context()
	owns := func(want string) {
		t.Helper()
		clusters, err := ownedAt(ctx, fleetID, "mgmt", client)
		_, untold := errors.AsType[*untoldError](err)
		if want == "" && err != nil || len(clusters) > 0 || want != "" && (!untold || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, %v; want %q", clusters, err, want)
		}
	}
	owns("belongs to no fleet yet")
	claim := &ownership.Claim{Fleet: fleetID, Name: "acme", Cluster: "other"}
	if err := claim.Create(ctx, client); err != nil {
		t.Fatal(err)
	}
	owns("is another one")
	claim, err := ownership.ReadClaim(ctx, client)
	if err != nil {
		t.Fatal(err)
	}
	claim.Cluster = "mgmt"
	if err := claim.Update(ctx, client); err != nil {
		t.Fatal(err)
	}
	owns("Cluster API is not installed")
	kubetest.ClusterAPI(t, client, "clusters", "machines")
	owns("")
	journal := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: handover.JournalKey.Namespace, Name: handover.JournalKey.Name}}
	for _, one := range []struct{ journal, want string }{
		{`{"formatVersion": "1", "role": "target", "phase": "fenced", "around": true}`, "in the middle of a restore by another tool"},
		{`{"formatVersion": "1", "role": "target", "phase": "copied", "snapshot": "s1"}`, "in the middle of a restore from the snapshot s1"},
		{`{"formatVersion": "1", "role": "source", "phase": "released", "target": {"name": "heir"}}`, "handed its work over to heir"},
		{`{"formatVersion": "1", "role": "target", "phase": "released"}`, ""},
	} {
		if err := client.WithWatch.Delete(ctx, journal.DeepCopy()); err != nil && !strings.Contains(err.Error(), "not found") {
			t.Fatal(err)
		}
		secret := journal.DeepCopy()
		secret.Data = map[string][]byte{"journal": []byte(one.journal)}
		if err := client.Create(ctx, secret); err != nil {
			t.Fatal(err)
		}
		owns(one.want)
	}
}
