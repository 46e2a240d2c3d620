package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// OwnRecord is what a workload cluster itself says of its owner. The administrators of the cluster can write it, so it is shown and not
// trusted: the Owner of a cluster is what the management cluster says.
type OwnRecord struct {
	// ManagementCluster is empty if the cluster was detached.
	ManagementCluster string `json:"managementCluster,omitempty"`
	Fleet             string `json:"fleet,omitempty"`
	// HandOver counts the hand-overs of the cluster.
	HandOver int64 `json:"handOver"`
	// Here: the record names the management cluster that was asked.
	Here bool `json:"here"`
	// OtherFleet: the record names another fleet.
	OtherFleet bool `json:"otherFleet,omitempty"`
	// Damaged: the record names no owner.
	Damaged bool `json:"damaged,omitempty"`

	// namesake: the record names another management cluster of the same name, such as one that was restored from the same snapshot.
	namesake bool
	told     bool // it says nothing that is newer than what the management cluster says, or else than that
}

// OwnRecords counts the workload clusters that were asked for their own record of their owner. Only clusters with an initialized control
// plane have an API server.
type OwnRecords struct {
	Answered int `json:"answered"`
	// Silent did not answer this machine. NotAsked had no kubeconfig, or the time was over.
	Silent   int `json:"silent"`
	NotAsked int `json:"notAsked"`
	// Forbidden: the user may not read the kubeconfig of a cluster, so no further cluster was asked.
	Forbidden bool `json:"forbidden,omitempty"`
}

// missed tells in a few words which clusters perhaps have another owner, and nobody knows; "" if there are none.
func (o OwnRecords) missed() string {
	if o.Silent+o.NotAsked == 0 {
		return ""
	}
	how := []string{fmt.Sprintf("%d of %d answered", o.Answered, o.Answered+o.Silent+o.NotAsked)}
	if o.Silent > 0 {
		how = append(how, fmt.Sprintf("%d did not", o.Silent))
	}
	if o.NotAsked > 0 {
		not := fmt.Sprintf("%d were not asked", o.NotAsked)
		if o.Forbidden {
			not += ", because your user may not read their kubeconfigs"
		}
		how = append(how, not)
	}
	return "asked for their own record of their owner: " + strings.Join(how, ", ")
}

// changedHands tells whether any workload cluster was handed over. Only such a cluster has a record of its owner, so that a person is not
// told of a new cluster that does not answer yet.
func (r *Report) changedHands() bool {
	return slices.ContainsFunc(r.Clusters, func(f Fleet) bool { return f.record.Epoch > 0 })
}

// maxOwner bounds a text of a workload cluster's own record, in bytes.
const maxOwner = 100

func tame(text string) string { return plain.Line(plain.Clip(text, maxOwner)) }

// ownRecords asks the workload clusters for their own record of their owner. Two restores of one snapshot on two machines know nothing of
// each other: such a record is the one place where they meet. The clusters that have changed hands are asked first.
func (c *collector) ownRecords(ctx context.Context, manager *capi.Manager, clusters []capi.Cluster) {
	var first, rest []kube.Key
	for _, cl := range clusters {
		switch {
		case !cl.Initialized:
		case cl.Owner.Epoch > 0:
			first = append(first, cl.Key())
		default:
			rest = append(rest, cl.Key())
		}
	}
	asked := c.from.Answers.latest(time.Now(), slices.Concat(first, rest), func() handover.OwnRecords {
		return handover.AskForRecords(ctx, manager, first, rest)
	})
	c.report.OwnRecords = OwnRecords{
		Answered: asked.Answered, Silent: asked.Silent, NotAsked: asked.Unasked, Forbidden: asked.Forbidden,
	}
	for i := range c.report.Clusters {
		w := &c.report.Clusters[i]
		if own, has := asked.Records[kube.Key{Namespace: w.Namespace, Name: w.Name}.String()]; has {
			w.says(own, c.uid, c.from.FleetID, c.report.Cluster.Name)
		}
	}
}

// says notes the cluster's own record. uid, fleet and name are those of the management cluster that was asked.
func (f *Fleet) says(own handover.OwnRecord, uid, fleet, name string) {
	f.own = &own
	f.OwnRecord = &OwnRecord{
		ManagementCluster: tame(own.ManagementCluster), Fleet: tame(own.Fleet), HandOver: own.Epoch, Damaged: own.Damaged,
		Here:       !own.Damaged && uid != "" && own.UID == uid,
		OtherFleet: !own.Damaged && fleet != "" && own.Fleet != fleet,
		namesake:   own.IsAnother(uid) && own.ManagementCluster == name && own.Fleet == fleet,
		told:       !own.Damaged && (own.Epoch < f.record.Epoch || own.UID != "" && own.UID == f.record.UID),
	}
}

// judgeOwnRecords finds the clusters whose own record names another management cluster of the fleet. In the middle of a hand-over, the
// record may name either side. The record may also be that of the management cluster that has handed the cluster over to this one.
func (c *collector) judgeOwnRecords() {
	for i := range c.report.Clusters {
		w := &c.report.Clusters[i]
		switch {
		case w.own == nil:
		case w.CopyOf != "":
			w.OwnRecord.told = true
		case !w.own.Contradicts(w.record, c.uid, c.from.FleetID):
		case w.own.Epoch == w.record.Epoch && c.handedOverBy(w):
			w.OwnRecord.told = true
		default:
			w.contradicted = !w.Paused && !w.Elsewhere
			w.TwoOwners = w.TwoOwners || w.contradicted
		}
	}
}

// handedOverBy tells whether the owner in the cluster's own record is the one from which this management cluster has taken it over.
func (c *collector) handedOverBy(w *Fleet) bool {
	return c.last.CameFrom(w.own.UID, w.Namespace+"/"+w.Name)
}

// blameTwo adds the problem that the cluster's own record names another owner than the one that acts on it here.
func (c *collector) blameTwo(w *Fleet) {
	full := w.Namespace + "/" + w.Name
	c.report.blame("Cluster "+full, w.OwnRecord.twoOwners(),
		"decide which of them manages it; if it is the other one, run `"+diag.ShellCommand("fleetctl", "cluster", "detach", full)+
			"` here: it deletes nothing; "+handover.IfWrong())
}

func (o *OwnRecord) twoOwners() string {
	other := "management cluster " + o.ManagementCluster
	if o.namesake {
		other = "another management cluster that is called " + o.ManagementCluster + ", too,"
	}
	return fmt.Sprintf("TWO OWNERS: its own record says that %s has taken it over (hand-over %d), but this one acts on it, too",
		other, o.HandOver)
}

// OwnRecordText is what is wrong with a cluster whose own record names another owner than the management cluster that was asked and acts on
// it. name, uid and fleet are those of this management cluster.
func OwnRecordText(own handover.OwnRecord, name, uid, fleet string) string {
	var f Fleet
	f.says(own, uid, fleet, name)
	return f.OwnRecord.twoOwners()
}

// otherOwner is the name of the second of two owners.
func (f *Fleet) otherOwner() string {
	if f.contradicted {
		return f.OwnRecord.name()
	}
	return f.Owner
}

// text shows a record that does not say what the management cluster says; "" if it does.
func (o *OwnRecord) text() string {
	const who = "its own record: "
	switch {
	case o.Damaged:
		return "its own record: damaged"
	case o.Here || o.told:
		return ""
	case o.ManagementCluster == "":
		return who + "detached"
	case o.OtherFleet:
		return who + fmt.Sprintf("owner %s of another fleet (%s)", o.ManagementCluster, cmp.Or(plain.Clip(o.Fleet, 8), "no identity"))
	}
	return who + "owner " + o.name()
}

// name of the management cluster in the record.
func (o *OwnRecord) name() string {
	if o.namesake {
		return "another " + o.ManagementCluster
	}
	return o.ManagementCluster
}
