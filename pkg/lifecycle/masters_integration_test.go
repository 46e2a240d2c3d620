//go:build integration

package lifecycle

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// A teardown refuses for Clusters that nothing else manages. What another management cluster of the fleet has taken over, as the cluster
// itself says, is no reason to stay, and is not deleted.
func TestTeardownLeavesWhatOthersManage(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	target := e.WithFlux(ctx, t)
	fleet := target.Record.FleetID
	if fleet == "" {
		t.Fatal("the record knows no fleet")
	}
	alpha := standingtest.NewWorkload("team-a", "alpha")
	if err := e.Client.Create(ctx, alpha); err != nil {
		t.Fatal(err)
	}
	workload, kubeconfig := kubetest.Start(t)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "alpha-kubeconfig"}, Data: map[string][]byte{"value": kubeconfig},
	}
	if err := e.Client.Create(ctx, secret); err != nil {
		t.Fatal(err)
	}
	says := func(owner capi.Owner) {
		t.Helper()
		record := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: handover.OwnerKey.Namespace, Name: handover.OwnerKey.Name},
			Data:       map[string]string{"owner": owner.String()},
		}
		if err := workload.WithWatch.Delete(ctx, record); err != nil && !kube.IsAbsent(err) {
			t.Fatal(err)
		}
		if err := workload.Create(ctx, record); err != nil {
			t.Fatal(err)
		}
	}
	own, err := handover.ClusterUID(ctx, e.Client)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(t *testing.T) {
		t.Helper()
		if _, err := Teardown(ctx, e.Deps, TeardownOptions{Target: target}); err == nil ||
			!strings.Contains(err.Error(), "live only on the management cluster") {
			t.Errorf("it was torn down: %v", err)
		}
	}
	eu := capi.Owner{Fleet: fleet, ManagementCluster: "eu", UID: "another", Epoch: 1}

	t.Run("one that says nothing", refused)
	says(eu)
	t.Run("one that is acted upon here, whatever it says", refused)
	t.Run("the deletion of one that is acted upon here, too", func(t *testing.T) {
		_, err := Teardown(ctx, e.Deps, TeardownOptions{Target: target, DeleteClusters: true})
		if err == nil || !strings.Contains(err.Error(), "team-a/alpha is managed by eu") {
			t.Errorf("two management clusters act on it, and one deletes it: %v", err)
		}
		if err := e.Client.Get(ctx, kube.Key{Namespace: "team-a", Name: "alpha"}, alpha); err != nil || alpha.DeletionTimestamp != nil {
			t.Fatalf("another one's was deleted: %v", err)
		}
	})
	paused := true
	alpha.Spec.Paused = &paused
	if err := e.Client.Update(ctx, alpha); err != nil {
		t.Fatal(err)
	}
	for name, owner := range map[string]capi.Owner{
		"one of another fleet":   {Fleet: "another", ManagementCluster: "eu", UID: "another", Epoch: 1},
		"one that was detached":  {Fleet: fleet, Epoch: 1},
		"one that is this one's": {Fleet: fleet, ManagementCluster: "eu", UID: own, Epoch: 1},
		"one that never changed": {Fleet: fleet, ManagementCluster: "eu", UID: "another"},
	} {
		says(owner)
		t.Run(name, refused)
	}
	says(eu)
	t.Run("one whose word nobody confirms", refused)
	euClient, euKubeconfig := kubetest.Start(t)
	e.connected(ctx, t, "eu", target.Record, euKubeconfig)
	t.Run("one whose owner is another cluster", refused)
	if eu.UID, err = handover.ClusterUID(ctx, euClient); err != nil {
		t.Fatal(err)
	}
	says(eu)
	child := *e
	child.Client = euClient
	kubetest.ClusterAPI(t, child.Client, "clusters", "machines")
	t.Run("one that its owner does not have", refused)
	if err := euClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}); err != nil {
		t.Fatal(err)
	}
	there := standingtest.NewWorkload("team-a", "alpha")
	there.Spec.Paused = &paused
	if err := euClient.Create(ctx, there); err != nil {
		t.Fatal(err)
	}
	t.Run("one that its owner does not act upon", refused)
	there.Spec.Paused = nil
	if err := euClient.Update(ctx, there); err != nil {
		t.Fatal(err)
	}
	t.Run("one that another one manages", func(t *testing.T) {
		result, err := Teardown(ctx, e.Deps, TeardownOptions{Target: target, DeleteClusters: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(result.DeletedClusters) > 0 {
			t.Errorf("deleted: %v", result.DeletedClusters)
		}
		if err := e.Client.Get(ctx, kube.Key{Namespace: "team-a", Name: "alpha"}, alpha); err != nil || alpha.DeletionTimestamp != nil {
			t.Errorf("what another one manages was deleted: %v", err)
		}
	})
}

// connected has this machine know a management cluster that another one made, of the same fleet as the one with that record.
func (e *existingCluster) connected(ctx context.Context, t *testing.T, name string, of *state.Record, kubeconfig []byte) {
	t.Helper()
	cluster := e.Deps.Store.Cluster(name)
	way := cluster.Path("way")
	if err := cluster.Save(state.Record{
		Name: name, Fleet: of.Fleet, FleetID: of.FleetID, Repo: e.Dir, HostType: "existing", Connected: true, KubeconfigSource: way,
		Context: kube.CurrentContext(kubeconfig),
	}); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{way, cluster.Path(management.KubeconfigFile)} {
		if err := kube.WriteKubeconfig(file, kubeconfig); err != nil {
			t.Fatal(err)
		}
	}
	client, err := kube.New(kubeconfig, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	claim := &ownership.Claim{Fleet: of.FleetID, Name: of.Fleet, Cluster: name, URL: e.Git.URL, Branch: "main", Confirmed: true}
	if err := claim.Create(ctx, client); err != nil {
		t.Fatal(err)
	}
}
