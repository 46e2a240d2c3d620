package management

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// CheckDeclaredOnce returns an error if Flux would not leave the Cluster alone after its HelmRelease is suspended, or if the HelmRelease
// makes other Clusters too. Such a Cluster cannot leave its management cluster alone. client is of the management cluster, and cluster is
// made by a HelmRelease.
func CheckDeclaredOnce(ctx context.Context, client *kube.Client, cluster *unstructured.Unstructured) error {
	key, release := kube.RefOf(cluster).Key, flux.ReleaseOf(cluster)
	all, err := client.ListKind(ctx, cluster.GroupVersionKind())
	if err != nil {
		return fmt.Errorf("list the Clusters: %w", err)
	}
	var others []string
	for i := range all {
		if other := kube.RefOf(&all[i]).Key; other != key && flux.ReleaseOf(&all[i]) == release {
			others = append(others, other.String())
		}
	}
	if len(others) > 0 {
		return diag.Errorf("give each of these clusters a HelmRelease of its own",
			"HelmRelease %s makes cluster %s and also %s, so one cannot leave without the others", release, key, strings.Join(others, ", "))
	}
	by, err := flux.NewSystem(client).Applying(ctx, cluster)
	if err != nil {
		return err
	}
	if len(by) > 0 {
		return diag.Errorf("remove the manifest of the Cluster from the folder of that Kustomization, with prune off",
			"cluster %s is declared twice: HelmRelease %s makes it, and Kustomization %s would make it again", key, release, by[0])
	}
	return nil
}
