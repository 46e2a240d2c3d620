package handover

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// OwnerKey names the ConfigMap in a workload cluster that says who manages this cluster. It exists once the cluster has
// changed hands, and outlives every management cluster.
var OwnerKey = kube.Key{Namespace: "kube-system", Name: "fleetctl-owner"}

const (
	// ownerTime bounds the wait for one workload cluster's API server. This machine cannot reach many of them, and the
	// record is helpful, but not required.
	ownerTime    = 5 * time.Second
	ownersTime   = 10 * time.Second
	ownersAtOnce = 24
	// mostOfOwner bounds the size, in bytes, of each answer of a workload cluster's API server, also to discovery.
	mostOfOwner = 16 << 20
)

// recordOwners writes the new owner into each workload cluster that was handed over. Clusters whose API servers do not
// answer get no record, because the record at the management cluster is enough.
func (r *run) recordOwners(ctx context.Context) {
	r.tell(PhaseReleased, "noting the owner in the workload clusters")
	missed := eachOwner(ctx, r.target.journal.Clusters, func(ctx context.Context, cluster kube.Key) error {
		kubeconfig, err := r.target.manager.WorkloadKubeconfig(ctx, cluster)
		if err != nil {
			return err
		}
		return writeOwner(ctx, kubeconfig, r.owner())
	})
	if len(missed) > 0 {
		const most = 5
		r.warn("%s keep no record of their new management cluster, because their API servers do not answer this machine: %s",
			plain.Count(len(missed), "cluster"), strings.Join(missed[:min(most, len(missed))], ", "))
	}
}

// recordDetached writes into the workload clusters that are about to be detached that they have no owner, so that nobody
// restores an earlier snapshot of them.
func (r *run) recordDetached(ctx context.Context) {
	j := r.source.journal
	_ = eachOwner(ctx, j.Clusters, func(ctx context.Context, cluster kube.Key) error {
		kubeconfig, err := r.source.manager.WorkloadKubeconfig(ctx, cluster)
		if err != nil {
			return err
		}
		now, err := readOwner(ctx, kubeconfig)
		if err != nil || now.ManagementCluster == "" && now.Epoch > 0 {
			return err
		}
		return writeOwner(ctx, kubeconfig, capi.Owner{Fleet: j.Fleet, Epoch: max(now.Epoch, j.Epoch) + 1})
	})
}

// eachOwner calls do for each cluster, NAMESPACE/NAME, side by side, and returns the clusters for which do failed.
func eachOwner(ctx context.Context, clusters []string, do func(context.Context, kube.Key) error) []string {
	ctx, cancel := context.WithTimeout(ctx, ownersTime+time.Duration(len(clusters)/ownersAtOnce)*ownerTime)
	defer cancel()
	var mu sync.Mutex
	var missed []string
	_ = kube.Each(ownersAtOnce, clusters, func(full string) error {
		ctx, cancel := context.WithTimeout(ctx, ownerTime)
		defer cancel()
		if err := do(ctx, kube.ParseKey(full)); err != nil {
			mu.Lock()
			defer mu.Unlock()
			missed = append(missed, full)
		}
		return nil
	})
	slices.Sort(missed)
	return missed
}

func readOwner(ctx context.Context, kubeconfig []byte) (capi.Owner, error) {
	client, err := kube.New(kubeconfig, kube.Options{Timeout: ownerTime, MostBytes: mostOfOwner})
	if err != nil {
		return capi.Owner{}, err
	}
	record := &corev1.ConfigMap{}
	err = client.Get(ctx, OwnerKey, record)
	if kube.IsAbsent(err) {
		return capi.Owner{}, nil
	}
	var owner capi.Owner
	if err == nil {
		err = json.Unmarshal([]byte(record.Data["owner"]), &owner)
	}
	return owner, err
}

// writeOwner writes the record, unless it names a later owner.
func writeOwner(ctx context.Context, kubeconfig []byte, owner capi.Owner) error {
	client, err := kube.New(kubeconfig, kube.Options{Timeout: ownerTime, MostBytes: mostOfOwner})
	if err != nil {
		return err
	}
	record := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: OwnerKey.Namespace, Name: OwnerKey.Name, Labels: map[string]string{"app.kubernetes.io/managed-by": "fleetctl"},
		},
		Data: map[string]string{"owner": owner.String()},
	}
	err = client.Create(ctx, record)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	there := &corev1.ConfigMap{}
	if err := client.Get(ctx, OwnerKey, there); err != nil {
		return err
	}
	var last capi.Owner
	if json.Unmarshal([]byte(there.Data["owner"]), &last) == nil && last.Epoch > owner.Epoch {
		return nil
	}
	there.Data = record.Data
	return client.Update(ctx, there)
}

// Elsewhere asks the API servers of a snapshot's Clusters who manages them. It returns the Clusters that a management
// cluster other than managementCluster has taken over since the snapshot was taken, by NAMESPACE/NAME, with a sentence
// about the owner. If they were restored, two management clusters would manage them. Elsewhere leaves out Clusters that
// do not answer, or whose record names another fleet. Every administrator of a Cluster can write its record.
func Elsewhere(ctx context.Context, objects []capi.Portable, fleet, managementCluster string) (others map[string]string) {
	kubeconfigs, epochs := map[string][]byte{}, map[string]int64{}
	var clusters []string
	for _, o := range objects {
		var obj struct {
			Kind     string            `json:"kind"`
			Metadata metav1.ObjectMeta `json:"metadata"`
			Data     map[string][]byte `json:"data"`
		}
		if json.Unmarshal(o.Object, &obj) != nil {
			continue // the code that reads the whole snapshot reports this
		}
		key := kube.Key{Namespace: obj.Metadata.Namespace, Name: obj.Metadata.Name}
		switch cluster, is := capi.ClusterOfKubeconfig(key); {
		case obj.Kind == "Cluster":
			clusters = append(clusters, key.String())
			epochs[key.String()] = capi.OwnerIn(obj.Metadata.Annotations).Epoch // each Cluster has its own epoch
		case obj.Kind == "Secret" && is:
			kubeconfigs[cluster.String()] = obj.Data["value"]
		}
	}
	var mu sync.Mutex
	others = map[string]string{}
	_ = eachOwner(ctx, clusters, func(ctx context.Context, cluster kube.Key) error {
		kubeconfig := kubeconfigs[cluster.String()]
		if reach, err := kube.ReachOf(kubeconfig); len(kubeconfig) == 0 || err != nil || reach.Text() != "" {
			return err
		}
		owner, err := readOwner(ctx, kubeconfig)
		if err != nil || owner.Fleet != fleet || owner.Epoch <= epochs[cluster.String()] || owner.ManagementCluster == managementCluster {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		others[cluster.String()] = "was detached"
		if owner.ManagementCluster != "" {
			others[cluster.String()] = "is managed by " + owner.ManagementCluster
		}
		return nil
	})
	return others
}
