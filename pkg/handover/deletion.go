package handover

import (
	"context"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// mostOfSentence bounds what is said of the owner in a workload cluster's record, in bytes: any text may be in it.
const mostOfSentence = 150

// RefuseDeletion asks workload clusters for their own records of their owner before their Clusters at the management
// cluster are deleted. The refusal names the Clusters whose record says that another management cluster of the fleet
// manages them: their machines are those of the other one. Workload clusters that do not answer, or that have no
// kubeconfig, are not refused: a cluster whose API is dead must be deletable. err says that nobody could ask.
func RefuseDeletion(ctx context.Context, at Side, clusters []capi.Cluster, fleet string) (refusal, err error) {
	if fleet == "" || len(clusters) == 0 {
		return nil, nil
	}
	uid, err := ClusterUID(ctx, at.Client)
	if err != nil {
		return nil, err
	}
	manager, err := capi.New(at.Client)
	if err != nil {
		return nil, err
	}
	others := heldByOthers(ctx, manager.WorkloadKubeconfig, clusters, Party{Name: at.Name, UID: uid}, fleet)
	if err := ctx.Err(); err != nil || len(others) == 0 {
		return nil, err
	}
	return diag.Errorf("decide which of them manages it; if it is the other one, run `"+
		diag.ShellCommand("fleetctl", "cluster", "detach", clusterIn(others[0]), "--management", at.Name)+"`: it deletes nothing; "+IfWrong(),
		"%s may not delete what another management cluster manages, as the clusters' own records say: %s", at.Name,
		strings.Join(others, ", ")), nil
}

// clusterIn returns the NAMESPACE/NAME that a sentence of heldByOthers begins with.
func clusterIn(sentence string) string {
	cluster, _, _ := strings.Cut(sentence, " ")
	return cluster
}

// heldByOthers returns a sentence about each Cluster whose record names another management cluster of the fleet than mine.
func heldByOthers(
	ctx context.Context, kubeconfigOf func(context.Context, kube.Key) ([]byte, error), clusters []capi.Cluster, mine Party, fleet string,
) []string {
	here := map[string]capi.Owner{}
	var names []string
	for _, c := range clusters {
		here[c.FullName()] = c.Owner
		names = append(names, c.FullName())
	}
	var others []string
	_ = eachRecordOf(ctx, kubeconfigOf, names, func(cluster string, a answer) {
		if !a.Contradicts(here[cluster], mine.UID, fleet) {
			return
		}
		says := heldBy(a.Owner, nil, fleet)
		if a.ManagementCluster == mine.Name { // both were restored from a snapshot of this one
			says = "is managed by another management cluster that is called " + mine.Name + ", too"
		}
		others = append(others, cluster+" "+plain.Line(plain.Clip(says, mostOfSentence)))
	})
	slices.Sort(others)
	return others
}
