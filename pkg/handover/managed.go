package handover

import (
	"context"
	"errors"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// ManagedElsewhere asks the API servers of Clusters who manages them. It returns, by NAMESPACE/NAME, the Clusters that
// another management cluster of the fleet manages, with the owner that their record names. The objects of these Clusters
// at client are leftover copies, or this management cluster and the other one were restored from one snapshot.
// ManagedElsewhere leaves out Clusters that are not paused at client, that do not answer, that were detached, or whose
// record names another fleet. Every administrator of a Cluster can write its record, so ask the named management cluster
// before anything depends on the answer.
func ManagedElsewhere(ctx context.Context, client *kube.Client, clusters []capi.Cluster, fleet string) (map[string]capi.Owner, error) {
	if fleet == "" || len(clusters) == 0 {
		return map[string]capi.Owner{}, nil
	}
	uid, err := ClusterUID(ctx, client)
	if err != nil {
		return nil, err
	}
	manager, err := capi.New(client)
	if err != nil {
		return nil, err
	}
	return takenOver(ctx, manager.WorkloadKubeconfig, clusters, uid, fleet), nil
}

// takenOver is ManagedElsewhere of the management cluster with this UID.
func takenOver(
	ctx context.Context, kubeconfigOf func(context.Context, kube.Key) ([]byte, error), clusters []capi.Cluster, uid, fleet string,
) map[string]capi.Owner {
	others, here := map[string]capi.Owner{}, map[string]capi.Cluster{}
	var names []string
	for _, c := range clusters {
		if c.Paused { // the leftover copy of a Cluster that was handed over stays paused
			here[c.FullName()] = c
			names = append(names, c.FullName())
		}
	}
	_ = eachRecordOf(ctx, kubeconfigOf, names, func(cluster string, a answer) {
		if a.Contradicts(here[cluster].Owner, uid, fleet) {
			others[cluster] = a.Owner
		}
	})
	return others
}

// CameFrom tells whether the hand-over of this journal, which may be nil, has brought a Cluster, NAMESPACE/NAME, here from
// the management cluster with this UID.
func (j *Journal) CameFrom(uid, cluster string) bool {
	return j != nil && j.Role == RoleTarget && j.Phase.Committed() && j.Source.UID != "" && j.Source.UID == uid &&
		slices.Contains(j.Clusters, cluster)
}

// RefuseAnothers returns an error if the Cluster at client is a leftover copy, because the workload cluster's own record
// says that another management cluster has taken it over or that it was detached, or if the record is damaged. It returns
// nil for a workload cluster that does not answer, or that has no kubeconfig, and for a record that names the management
// cluster with the UID to, which is about to take the Cluster over: an abort perhaps could not take that record back.
func RefuseAnothers(ctx context.Context, at Side, cluster kube.Key, to string) error {
	manager, err := capi.New(at.Client)
	if err != nil {
		return err
	}
	object, err := manager.ClusterObject(ctx, cluster)
	if err != nil {
		return err
	}
	uid, err := ClusterUID(ctx, at.Client)
	if err != nil {
		return err
	}
	asked, cancel := context.WithTimeout(ctx, ownerTime)
	defer cancel()
	kubeconfig, err := manager.WorkloadKubeconfig(asked, cluster)
	if err != nil {
		return ctx.Err()
	}
	owner, err := readOwner(asked, kubeconfig)
	mine := capi.OwnerIn(object.GetAnnotations())
	switch {
	case errors.Is(err, errDamaged):
		return diag.Errorf("find out whether another management cluster manages it; "+IfWrong(), "cluster %s: %w", cluster, errDamaged)
	case err != nil || owner.UID != "" && slices.Contains([]string{uid, to}, owner.UID) || precedes(owner, mine, uid):
		return ctx.Err()
	case owner.Epoch == mine.Epoch: // two restores of one snapshot
		return diag.Errorf("find out which of the two is to manage it, and run `fleetctl cluster detach` at the other one; "+IfWrong(),
			"cluster %s %s, as its own record says, and %s acts on it, too", cluster, heldBy(owner, nil, owner.Fleet), at.Name)
	}
	says := "was detached"
	if owner.ManagementCluster != "" {
		says = "is managed by " + owner.ManagementCluster
	}
	detach := diag.ShellCommand("fleetctl", "cluster", "detach", cluster.String(), "--management", at.Name)
	return diag.Errorf("if it is there, remove the copy: `"+detach+"`; "+IfWrong(),
		"cluster %s %s, as its own record says: what %s has is a leftover copy", cluster, says, at.Name)
}
