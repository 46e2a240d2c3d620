package handover

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// lookBounds bounds a look at the records of all workload clusters, and the part of it that one of them gets.
type lookBounds struct{ all, each time.Duration }

// short is for who only looks: this machine may reach none of hundreds of clusters.
var short = lookBounds{all: 4 * time.Second, each: 1500 * time.Millisecond}

const (
	lookAtOnce = 100
	// mostOfLook bounds the size, in bytes, of each answer of each of the lookAtOnce API servers. Nothing in a
	// ConfigMap is larger.
	mostOfLook = 2 << 20
)

// OwnRecord is what a workload cluster itself says of its owner. Every administrator of the cluster can write it, and any
// text may be in it.
type OwnRecord struct {
	capi.Owner
	// Damaged: the record names no owner, and fleetctl did not write it so.
	Damaged bool
}

// Contradicts tells whether the record names another management cluster of the fleet than the one that has a Cluster with
// the owner here, and whose kube-system has this UID. An older record does not: whoever has the Cluster now perhaps could
// not reach it when it took over. Two restores of one snapshot count the same number of hand-overs.
func (o OwnRecord) Contradicts(here capi.Owner, uid, fleet string) bool {
	return !o.Damaged && fleet != "" && o.Fleet == fleet && o.ManagementCluster != "" && outdates(o.Owner, here, uid)
}

// outdates tells whether the record of a workload cluster names another management cluster than the one with this UID, and
// is later than the owner that this one has on its Cluster. If both count the same number of hand-overs, and the Cluster
// names this one, there were two last hand-overs.
func outdates(record, here capi.Owner, uid string) bool {
	return record.IsAnother(uid) && !precedes(record, here, uid)
}

// precedes tells whether the record of a workload cluster is no later than the owner that the management cluster with this
// UID has on its Cluster. Records count on from each other, so that of the management cluster that has handed the Cluster
// over to this one, which perhaps could not be replaced, may have the same number.
func precedes(record, here capi.Owner, uid string) bool {
	if record.Epoch != here.Epoch {
		return record.Epoch < here.Epoch
	}
	return here.UID != uid || !record.IsAnother(uid) || record.UID == here.From
}

// OwnRecords are the answers of the workload clusters that were asked for the record of their owner.
type OwnRecords struct {
	// Records of those that answered and have one, by NAMESPACE/NAME.
	Records map[string]OwnRecord
	// Answered, Silent and Unasked count the clusters: those that answered, those that did not answer this machine, and
	// those for which there was no time, or no kubeconfig.
	Answered, Silent, Unasked int
	// Without are those that answered and have no record, by NAMESPACE/NAME.
	Without map[string]bool
	// Forbidden: the user may not read the kubeconfig of a cluster. Then no further one was read.
	Forbidden bool
}

// AskForRecords asks workload clusters who manages them, side by side. It takes a few seconds at most, so it may not ask
// all of them: it begins with those of first, and asks the rest in random order, so that each gets its turn some time.
func AskForRecords(ctx context.Context, manager *capi.Manager, first, rest []kube.Key) OwnRecords {
	return askForRecords(ctx, short, manager.WorkloadKubeconfig, first, rest)
}

func askForRecords(
	ctx context.Context, wait lookBounds, kubeconfigOf func(context.Context, kube.Key) ([]byte, error), first, rest []kube.Key,
) OwnRecords {
	ctx, cancel := context.WithTimeout(ctx, wait.all)
	defer cancel()
	all := append([]kube.Key{}, first...)
	for _, i := range rand.Perm(len(rest)) { //nolint:gosec // the order is no secret
		all = append(all, rest[i])
	}
	out := OwnRecords{Records: map[string]OwnRecord{}, Without: map[string]bool{}}
	var mu sync.Mutex
	may := func() error {
		mu.Lock()
		defer mu.Unlock()
		if out.Forbidden {
			return errNoRights
		}
		return nil
	}
	_ = kube.Each(lookAtOnce, all, func(cluster kube.Key) error {
		var record *OwnRecord
		asked, err := false, may()
		if err == nil {
			record, asked, err = askForRecord(ctx, wait.each, kubeconfigOf, cluster)
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			out.Answered++
			if out.Without[cluster.String()] = record == nil; record != nil {
				out.Records[cluster.String()] = *record
			}
		case !asked && apierrors.IsForbidden(err):
			out.Forbidden = true
			out.Unasked++
		case asked && ctx.Err() == nil:
			out.Silent++
		default: // also if the time was over before it had its share
			out.Unasked++
		}
		return nil
	})
	return out
}

// errNoRights says that the user may not read the kubeconfigs of the workload clusters, as an earlier request has shown.
var errNoRights = errors.New("the user may not read the kubeconfigs")

// askForRecord asks one workload cluster. The record is nil if there is none. asked tells whether a request was sent.
func askForRecord(
	ctx context.Context, wait time.Duration, kubeconfigOf func(context.Context, kube.Key) ([]byte, error), cluster kube.Key,
) (record *OwnRecord, asked bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	kubeconfig, err := kubeconfigOf(ctx, cluster)
	if err != nil {
		return nil, false, err
	}
	workload, err := kube.New(kubeconfig, kube.Options{Timeout: wait, MostBytes: mostOfLook})
	if err != nil {
		return nil, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	object, err := workload.ConfigMap(ctx, OwnerKey)
	if err != nil || object == nil {
		return nil, true, err
	}
	owner, err := ownerOf(object)
	return &OwnRecord{Owner: owner, Damaged: errors.Is(err, errDamaged)}, true, nil
}
