package handover

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
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

// IfWrong is what to do about the record in a workload cluster if it is wrong, for the end of a hint.
func IfWrong() string {
	return "if the record is wrong, delete the ConfigMap " + OwnerKey.String() + " of that cluster"
}

// errDamaged says that a workload cluster has a record of its owner which names none, and which fleetctl did not write so.
var errDamaged = errors.New("its record of its owner is damaged: ConfigMap " + OwnerKey.String())

// recordOwners writes the new owner into each workload cluster that was handed over. Clusters whose API servers do not
// answer get no record, because the record at the management cluster is enough. Clusters that began paused keep the
// record of the management cluster that manages them. So does a cluster that could not be asked before the commit, and
// that another management cluster has taken over: nobody may decide that but a person.
func (r *run) recordOwners(ctx context.Context) {
	r.tell(PhaseReleased, "noting the owner in the workload clusters")
	mine := slices.DeleteFunc(slices.Clone(r.target.journal.Clusters), r.target.journal.beginsPaused)
	silent, taken := r.eachRecord(ctx, mine, r.owner())
	const most = 5
	if len(silent) > 0 {
		r.warn("no record of the new management cluster in %s, because the API server does not answer this machine: %s",
			plain.Count(len(silent), "cluster"), strings.Join(silent[:min(most, len(silent))], ", "))
	}
	if len(taken) > 0 {
		r.warn("two management clusters may act on %s: %s. Find out which of the two is to manage them, and run `fleetctl cluster detach` "+
			"at the other one", plain.Count(len(taken), "cluster"), strings.Join(taken[:min(most, len(taken))], ", "))
	}
}

// recordDetached writes into the workload clusters that are about to be detached that they have no owner, so that nobody
// restores an earlier snapshot of them. A cluster that another management cluster has taken over keeps its record: only
// a leftover copy of it is detached here.
func (r *run) recordDetached(ctx context.Context) {
	_ = eachOwner(ctx, r.source.journal.Clusters, r.recordOneDetached)
}

func (r *run) recordOneDetached(ctx context.Context, cluster kube.Key) error {
	object, err := r.source.manager.ClusterObject(ctx, cluster)
	if err != nil {
		return err // also if an earlier run has removed it: that run wrote the record first
	}
	kubeconfig, err := r.source.manager.WorkloadKubeconfig(ctx, cluster)
	if err != nil {
		return err
	}
	now, seen, err := lookAtOwner(ctx, kubeconfig)
	if err != nil && !errors.Is(err, errDamaged) {
		return err
	}
	detached := now.ManagementCluster == "" && now.Epoch > 0
	others := outdates(now, capi.OwnerIn(object.GetAnnotations()), r.source.party.UID)
	if detached || others {
		return nil
	}
	j := r.source.journal
	mark := claim{owner: capi.Owner{Fleet: j.Fleet, Epoch: max(now.Epoch, j.Epoch) + 1}, asked: true, seen: seen}
	return mark.write(ctx, kubeconfig)
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

// answer is the record that a workload cluster has of its owner.
type answer struct {
	OwnRecord

	// seen is the fingerprint of the record, also of a damaged one; "" without a record.
	seen string
}

// eachRecordOf asks workload clusters, NAMESPACE/NAME, for the record of their owner, side by side, and calls judge for
// each that answers, one call at a time. Without a record, the answer is zero. It returns the clusters that do not answer,
// or that have no kubeconfig.
func eachRecordOf(
	ctx context.Context, kubeconfigOf func(context.Context, kube.Key) ([]byte, error), clusters []string, judge func(cluster string, a answer),
) (silent []string) {
	var mu sync.Mutex
	return eachOwner(ctx, clusters, func(ctx context.Context, cluster kube.Key) error {
		kubeconfig, err := kubeconfigOf(ctx, cluster)
		if err != nil {
			return err
		}
		owner, seen, err := lookAtOwner(ctx, kubeconfig)
		damaged := errors.Is(err, errDamaged)
		if err != nil && !damaged {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		judge(cluster.String(), answer{OwnRecord{Owner: owner, Damaged: damaged}, seen})
		return nil
	})
}

// readOwner reads the record of a workload cluster. It returns the zero value if there is none. The error is errDamaged
// if the record names no owner.
func readOwner(ctx context.Context, kubeconfig []byte) (capi.Owner, error) {
	owner, _, err := lookAtOwner(ctx, kubeconfig)
	return owner, err
}

// lookAtOwner is readOwner, and also returns the fingerprint of the record. It returns the fingerprint of a damaged
// record, too.
func lookAtOwner(ctx context.Context, kubeconfig []byte) (owner capi.Owner, seen string, err error) {
	workload, err := ownerClient(kubeconfig)
	if err != nil {
		return capi.Owner{}, "", err
	}
	record, err := ownerRecord(ctx, workload)
	if err != nil || record == nil {
		return capi.Owner{}, "", err
	}
	owner, err = ownerOf(record)
	return owner, fingerprint(record), err
}

// ownerOf decodes a record. No record of fleetctl is without an epoch.
func ownerOf(record *corev1.ConfigMap) (capi.Owner, error) {
	var owner capi.Owner
	var has struct {
		Epoch *int64 `json:"epoch"`
	}
	content := []byte(record.Data[ownerField])
	if errors.Join(json.Unmarshal(content, &owner), json.Unmarshal(content, &has)) != nil || has.Epoch == nil || owner.Epoch < 0 {
		return capi.Owner{}, errDamaged
	}
	return owner, nil
}

// Holders says who manages the Clusters of a snapshot, by NAMESPACE/NAME. Every administrator of a Cluster can write its
// record.
type Holders struct {
	// Others are the Clusters that another management cluster has taken over since the snapshot was taken, and those whose
	// record is damaged, so that nobody can tell: with a sentence about the owner. If they were restored, two management
	// clusters could manage them.
	Others map[string]string
	// Silent are the Clusters that could not be asked.
	Silent []string
	// Seen are the fingerprints of the records of all Clusters that answered, for RestoreOptions.Owners.
	Seen map[string]string
}

// Elsewhere asks the API servers of a snapshot's Clusters who manages them. The name of mine is that of the management
// cluster of the snapshot, in this fleet. The UID of mine, if it has one, is that of the cluster that an earlier run began
// to restore into, and that may have claimed the Clusters already. Clusters without a kubeconfig are not asked: they have
// no API server yet.
func Elsewhere(ctx context.Context, objects []capi.Portable, mine Party, fleet string) *Holders {
	kubeconfigs, epochs := inSnapshot(objects)
	var asked []string
	for cluster := range epochs {
		if len(kubeconfigs[cluster]) > 0 {
			asked = append(asked, cluster)
		}
	}
	h := &Holders{Others: map[string]string{}, Seen: map[string]string{}}
	h.Silent = eachRecordOf(ctx, kubeconfigIn(kubeconfigs), asked, func(cluster string, a answer) {
		h.Seen[cluster] = a.seen
		if a.Damaged {
			h.Others[cluster] = heldBy(a.Owner, errDamaged, fleet)
		} else if says := elsewhere(a.Owner, epochs[cluster], mine, fleet); says != "" {
			h.Others[cluster] = says
		}
	})
	return h
}

// kubeconfigIn returns kubeconfigs of a snapshot, none of which runs a command or reads a file of this machine.
func kubeconfigIn(kubeconfigs map[string][]byte) func(context.Context, kube.Key) ([]byte, error) {
	return func(_ context.Context, cluster kube.Key) ([]byte, error) {
		kubeconfig := kubeconfigs[cluster.String()]
		reach, err := kube.ReachOf(kubeconfig)
		if err != nil {
			return nil, err
		}
		if runs := reach.Text(); runs != "" {
			return nil, errors.New("its kubeconfig is not used: " + runs)
		}
		return kubeconfig, nil
	}
}

// elsewhere says who has taken a Cluster over since it had this epoch; "" if nobody but mine has. Another
// fleet may have: a management cluster with a fleet repo of its own.
func elsewhere(owner capi.Owner, epoch int64, mine Party, fleet string) string {
	if owner.Epoch <= epoch || owner.Fleet == fleet && (owner.ManagementCluster == mine.Name || mine.UID != "" && owner.UID == mine.UID) {
		return ""
	}
	return heldBy(owner, nil, fleet)
}

// inSnapshot returns the kubeconfigs of a snapshot's Clusters, and how many times each Cluster had changed hands, by
// NAMESPACE/NAME.
func inSnapshot(objects []capi.Portable) (kubeconfigs map[string][]byte, epochs map[string]int64) {
	kubeconfigs, epochs = map[string][]byte{}, map[string]int64{}
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
			epochs[key.String()] = capi.OwnerIn(obj.Metadata.Annotations).Epoch // each Cluster has its own epoch
		case obj.Kind == "Secret" && is:
			kubeconfigs[cluster.String()] = obj.Data["value"]
		}
	}
	return kubeconfigs, epochs
}
