package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/leaving"
	"github.com/fleetctl/fleetctl/pkg/management"
)

// onlyHere returns the Clusters that no other management cluster manages. A Cluster that another management cluster of the fleet has taken
// over is no reason to keep this one, and teardown must not delete it. The mark on the Cluster is not enough, because every administrator
// of the cluster can write it. So onlyHere also asks the other management cluster.
func (t *teardown) onlyHere(ctx context.Context, clusters []capi.Cluster) ([]capi.Cluster, error) {
	record := t.opts.Target.Record
	if record == nil {
		return clusters, nil
	}
	elsewhere, err := handover.ManagedElsewhere(ctx, t.client, clusters, record.FleetID)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(clusters), func(c capi.Cluster) bool {
		owner, is := elsewhere[c.FullName()]
		if !is {
			return false
		}
		if err := t.confirms(ctx, c, owner, record.FleetID); err != nil {
			t.tellOnce(c, fmt.Sprintf(
				"%s says that another management cluster manages it by now. It counts as living only here, because that is not confirmed: %v",
				c.FullName(), err))
			return false
		}
		t.tellOnce(c, fmt.Sprintf("%s is managed by %s by now: what %s still has of it is left as it is", c.FullName(),
			owner.ManagementCluster, t.opts.Target.Name))
		return true
	}), nil
}

// refuseAnothers refuses the deletion of Clusters whose own record names another management cluster of the fleet, such as another restore
// of the same snapshot: their machines are its machines.
func (t *teardown) refuseAnothers(ctx context.Context) error {
	if record := t.opts.Target.Record; t.opts.DeleteClusters && t.client != nil && record != nil {
		at := handover.Side{Name: t.opts.Target.Name, Client: t.client}
		refusal, err := handover.RefuseDeletion(ctx, at, t.clusters, record.FleetID)
		return errors.Join(refusal, err)
	}
	return nil
}

// waysOut is the hint if Clusters live only here. A management cluster of the fleet can take over its own Cluster, and no pivot may point
// its Flux at the folder of this one. The other Clusters need a permanent management cluster.
func (t *teardown) waysOut() string {
	var ways []string
	others := false
	for _, c := range t.clusters {
		if !t.opts.Target.OfFleet(c.Name) {
			others = true
			continue
		}
		ways = append(ways, fmt.Sprintf("let %s manage its own machines: fleetctl bootstrap --management %s --stand-alone", c.Name, c.Name))
	}
	if others && len(ways) == 0 {
		ways = append(ways, fmt.Sprintf(
			"move them to a permanent management cluster: fleetctl bootstrap --management %s --pivot-to CLUSTER", t.opts.Target.Name))
	} else if others {
		ways = append(ways, "transfer the others: `fleetctl cluster transfer NAME --to MANAGEMENT`")
	}
	return strings.Join(append(ways, ""), "; ") + "or delete them as well: fleetctl teardown --management " + t.opts.Target.Name +
		" --delete-clusters"
}

// confirms asks the management cluster that a Cluster names as its owner whether it has that Cluster and reconciles it. It uses the
// kubeconfig that this machine knows.
func (t *teardown) confirms(ctx context.Context, c capi.Cluster, owner capi.Owner, fleet string) error {
	ctx, cancel := context.WithTimeout(ctx, leaving.AnswerTime)
	defer cancel()
	if wrong := validation.IsDNS1123Label(owner.ManagementCluster); len(wrong) > 0 {
		return diag.Errorf("", "its name is not a name of a management cluster")
	}
	target, err := management.Find(t.Store, owner.ManagementCluster, "")
	if err != nil {
		return err
	}
	if target.Record == nil || target.Record.FleetID != fleet {
		return diag.Errorf("", "this machine does not know %s as a management cluster of this fleet; `fleetctl connect --management %s` tells it",
			owner.ManagementCluster, owner.ManagementCluster)
	}
	client, err := target.Client(ctx)
	if err != nil {
		return err
	}
	uid, err := handover.ClusterUID(ctx, client)
	if err != nil {
		return err
	}
	if uid != owner.UID {
		return diag.Errorf("", "%s is not the cluster that the record names", owner.ManagementCluster)
	}
	manager, err := capi.New(client)
	if err != nil {
		return err
	}
	there, err := manager.ClusterObject(ctx, c.Key())
	if err != nil {
		return err
	}
	if paused, _, _ := unstructured.NestedBool(there.Object, "spec", "paused"); paused || there.GetDeletionTimestamp() != nil {
		return diag.Errorf("", "on %s it is paused, or is being deleted", owner.ManagementCluster)
	}
	return nil
}

// tellOnce warns of a Cluster only once.
func (t *teardown) tellOnce(c capi.Cluster, text string) {
	if t.told == nil {
		t.told = map[string]bool{}
	}
	if !t.told[c.FullName()] {
		t.told[c.FullName()] = true
		t.Report.Warn(text)
	}
}
