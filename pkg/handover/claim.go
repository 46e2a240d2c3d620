package handover

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// The fields of the record in a workload cluster. The second one has what the first one said before, so that an abort
// can take a claim back.
const (
	ownerField  = "owner"
	beforeField = "before"
)

// ownerTries bounds how often a write of the record is repeated because somebody else has written it in between.
const ownerTries = 5

// takenError says that another management cluster has written the record of a workload cluster first.
type takenError struct{ says string }

func (e *takenError) Error() string { return e.says }

// claim is what one management cluster writes into the record of a workload cluster.
type claim struct {
	owner capi.Owner
	// asked says that the workload cluster was asked for its record when the hand-over began. seen is the fingerprint of
	// what it said then.
	asked bool
	seen  string
}

// claimOf returns what a hand-over with this journal writes into the record of a Cluster, NAMESPACE/NAME.
func (j *Journal) claimOf(cluster string, owner capi.Owner) claim {
	seen, asked := j.Owners[cluster]
	return claim{owner: owner, asked: asked, seen: seen}
}

// fingerprint identifies the content of a record in few characters, because the journal keeps one for each Cluster. It is
// "" if there is no record.
func fingerprint(record *corev1.ConfigMap) string {
	if record == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(record.Data[ownerField]))
	return hex.EncodeToString(sum[:8])
}

// claimOwners writes the new owner into the workload clusters before the commit. Two hand-overs of the same work to
// different management clusters, such as two restores of one snapshot, have no journal in common: the record of a
// workload cluster is the one place where they meet. Each writes over no other record than the one that it saw when it
// began, so at most one of them gets past here. The error names the Clusters that another one got. Clusters that do not
// answer, or that did not answer when the hand-over began, cannot decide it: recordOwners writes their record.
func (r *run) claimOwners(ctx context.Context, owner capi.Owner) error {
	j := r.target.journal
	asked := slices.DeleteFunc(slices.Clone(j.Clusters), func(cluster string) bool {
		_, asked := j.Owners[cluster]
		return !asked || j.beginsPaused(cluster)
	})
	if len(asked) == 0 {
		return nil
	}
	r.tell(PhaseVerified, "noting the owner in the workload clusters")
	_, taken := r.eachRecord(ctx, asked, owner)
	if err := ctx.Err(); err != nil {
		return err // the run was interrupted, and not every cluster was asked
	}
	if len(taken) == 0 {
		return nil
	}
	return diag.Errorf(r.undoHint()+"; `fleetctl status` shows who manages the clusters",
		"other management clusters have taken over clusters since this began: %s", strings.Join(taken, ", "))
}

// askOwners asks the workload clusters for the records of their owners before a hand-over begins. seen has the
// fingerprints of the records of those that answer. The Clusters in others, NAMESPACE/NAME, are paused leftover copies of
// Clusters that another management cluster manages: the hand-over moves the copies, and leaves the records as they are.
// The error names Clusters that another one manages, and that are not paused at the source.
func (r *run) askOwners(ctx context.Context, clusters []string) (seen map[string]string, others []string, err error) {
	all, err := r.source.manager.Clusters(ctx)
	if err != nil {
		return nil, nil, err
	}
	here := map[string]capi.Cluster{}
	for _, c := range all {
		here[c.FullName()] = c
	}
	seen = map[string]string{}
	var refused []string
	_ = eachRecordOf(ctx, r.source.manager.WorkloadKubeconfig, clusters, func(full string, a answer) {
		seen[full] = a.seen
		switch ours := a.UID == r.source.party.UID || a.UID == r.target.party.UID; {
		case a.Damaged || ours || precedes(a.Owner, here[full].Owner, r.source.party.UID):
		case a.ManagementCluster == "": // somebody has detached it, and brought it back here
		case here[full].Paused:
			others = append(others, full)
		default:
			refused = append(refused, full+" "+heldBy(a.Owner, nil, r.Fleet))
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	slices.Sort(others)
	slices.Sort(refused)
	if len(refused) > 0 {
		return nil, nil, diag.Errorf("find out which management cluster is to manage them, and run `fleetctl cluster detach` at the other one; "+
			"if a record is wrong, delete the ConfigMap "+OwnerKey.String()+" of that cluster",
			"their own records say that other management clusters manage clusters of %s: %s", r.source.Name, strings.Join(refused, ", "))
	}
	return seen, others, nil
}

// eachRecord makes owner the owner in the record of each Cluster, NAMESPACE/NAME. It returns the Clusters that do not
// answer, and a sentence about each Cluster that another management cluster has claimed.
func (r *run) eachRecord(ctx context.Context, clusters []string, owner capi.Owner) (silent, taken []string) {
	others := map[string]string{}
	var mu sync.Mutex
	silent = eachOwner(ctx, clusters, func(ctx context.Context, cluster kube.Key) error {
		kubeconfig, err := r.target.manager.WorkloadKubeconfig(ctx, cluster)
		if err != nil {
			return err
		}
		err = r.target.journal.claimOf(cluster.String(), owner).write(ctx, kubeconfig)
		if another, is := errors.AsType[*takenError](err); is {
			mu.Lock()
			defer mu.Unlock()
			others[cluster.String()] = another.says
			return nil
		}
		return err
	})
	for _, cluster := range slices.Sorted(maps.Keys(others)) {
		taken = append(taken, cluster+" "+others[cluster])
	}
	return silent, taken
}

// write makes c.owner the owner in the record of the workload cluster with this kubeconfig. The error is a *takenError
// if another management cluster has written the record since the hand-over began.
func (c claim) write(ctx context.Context, kubeconfig []byte) error {
	workload, err := ownerClient(kubeconfig)
	if err != nil {
		return err
	}
	for range ownerTries {
		if err = c.tryWrite(ctx, workload); !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return err
}

func (c claim) tryWrite(ctx context.Context, workload *kube.Client) error {
	now, err := ownerRecord(ctx, workload)
	if err != nil {
		return err
	}
	if now == nil {
		return workload.Create(ctx, newRecord(c.owner))
	}
	last, damaged := ownerOf(now)
	if damaged == nil && last.UID == c.owner.UID && last.ManagementCluster == c.owner.ManagementCluster && last.Epoch >= c.owner.Epoch {
		return nil // an earlier run wrote it
	}
	if !c.yields(now) {
		return &takenError{says: heldBy(last, damaged, c.owner.Fleet)}
	}
	next, owner := now.DeepCopy(), c.owner
	if damaged == nil { // each record is later than the one before it, so that a snapshot shows how old it is
		owner.Epoch = max(owner.Epoch, last.Epoch+1)
	}
	next.Data = map[string]string{ownerField: owner.String(), beforeField: now.Data[ownerField]}
	return workload.Update(ctx, next) // with the version that was read
}

// yields tells whether the claim may write over this record: over what it saw, and nothing else. The epoch does not decide
// then, because the one of a hand-over is the highest of all its Clusters. Where the claim has seen nothing, it may write
// over an older record, and over that of a management cluster of the same name, which it replaces.
func (c claim) yields(now *corev1.ConfigMap) bool {
	if c.asked {
		return fingerprint(now) == c.seen
	}
	last, err := ownerOf(now)
	if err != nil {
		return true
	}
	replaces := last.Fleet == c.owner.Fleet && last.ManagementCluster == c.owner.ManagementCluster
	return replaces || last.Epoch < c.owner.Epoch
}

// heldBy says who has a Cluster, by its record. damaged is the error of reading the record.
func heldBy(owner capi.Owner, damaged error, fleet string) string {
	switch {
	case damaged != nil:
		return "cannot tell its owner, because " + damaged.Error()
	case owner.ManagementCluster == "":
		return "was detached"
	case owner.Fleet != fleet:
		return fmt.Sprintf("is managed by %s of another fleet (%.8s)", owner.ManagementCluster, owner.Fleet)
	}
	return "is managed by " + owner.ManagementCluster
}

// aborting returns the journal of an abort by this runner. It forgets the Clusters that answered if the hand-over has not
// come to its claims: then there is no claim to take back, and no reason to ask all Clusters, of which this machine
// perhaps reaches none.
func (j *Journal) aborting(runner, by string) *Journal {
	next := *j
	if j.Phase != PhaseAborting && !j.Phase.reached(PhaseVerified) {
		next.Owners = nil
	}
	next.Phase, next.Runner, next.By = PhaseAborting, runner, by
	return &next
}

// takeBackClaims undoes claimOwners. A record that does not name this claim stays as it is. Clusters that do not answer
// keep the claim: the warning says so.
func (r *run) takeBackClaims(ctx context.Context) {
	j := r.target.journal
	missed := eachOwner(ctx, slices.Sorted(maps.Keys(j.Owners)), func(ctx context.Context, cluster kube.Key) error {
		kubeconfig, err := r.target.manager.WorkloadKubeconfig(ctx, cluster)
		if kube.IsAbsent(err) {
			return nil // nothing was copied yet, or an earlier abort has removed it
		}
		if err != nil {
			return err
		}
		return takeBack(ctx, kubeconfig, r.target.party.UID, j.claimOf(cluster.String(), capi.Owner{Epoch: j.Epoch}))
	})
	if len(missed) > 0 {
		r.warn("%d of the workload clusters do not answer this machine, so a record in them may name %s as their owner: %s. "+
			"If `fleetctl status` or a later command says that it manages them, delete the ConfigMap %s in them",
			len(missed), r.target.Name, strings.Join(missed, ", "), OwnerKey)
	}
}

// takeBack restores the record that the claim of the management cluster with this UID replaced.
func takeBack(ctx context.Context, kubeconfig []byte, uid string, c claim) error {
	workload, err := ownerClient(kubeconfig)
	if err != nil {
		return err
	}
	now, err := ownerRecord(ctx, workload)
	if err != nil || now == nil || c.asked && fingerprint(now) == c.seen { // this hand-over wrote nothing
		return err
	}
	before, claimed := now.Data[beforeField]
	last, damaged := ownerOf(now)
	if damaged != nil || !claimed || last.UID != uid || last.Epoch <= c.owner.Epoch {
		return nil //nolint:nilerr // a damaged record is not this claim
	}
	if before == "" {
		version := now.ResourceVersion
		err := workload.WithWatch.Delete(ctx, now, client.Preconditions{ResourceVersion: &version})
		return client.IgnoreNotFound(err)
	}
	next := now.DeepCopy()
	next.Data = map[string]string{ownerField: before}
	return workload.Update(ctx, next)
}

func ownerClient(kubeconfig []byte) (*kube.Client, error) {
	return kube.New(kubeconfig, kube.Options{Timeout: ownerTime, MostBytes: mostOfOwner})
}

// ownerRecord reads the record of a workload cluster; nil if there is none.
func ownerRecord(ctx context.Context, workload *kube.Client) (*corev1.ConfigMap, error) {
	record := &corev1.ConfigMap{}
	err := workload.Get(ctx, OwnerKey, record)
	if kube.IsAbsent(err) {
		return nil, nil
	}
	return record, err
}

// newRecord is the first record of a workload cluster. An abort removes it.
func newRecord(owner capi.Owner) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: OwnerKey.Namespace, Name: OwnerKey.Name, Labels: map[string]string{"app.kubernetes.io/managed-by": "fleetctl"},
		},
		Data: map[string]string{ownerField: owner.String(), beforeField: ""},
	}
}
