// Package status collects the state of a management cluster into one Report. It reads the sources in parallel. A source that fails is a
// field of the report and does not end it.
package status

import (
	"slices"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Report is the state of a management cluster, its providers, its Flux and its workload clusters at one moment.
type Report struct {
	FormatVersion string    `json:"formatVersion"`
	Time          time.Time `json:"time"`
	Ready         bool      `json:"ready"`
	Cluster       Cluster   `json:"managementCluster"`
	Git           Git       `json:"git"`
	Providers     []Item    `json:"providers"`
	Flux          Flux      `json:"flux"`
	Clusters      []Fleet   `json:"clusters"`
	// OwnRecords counts the workload clusters that were asked for their own record of their owner.
	OwnRecords OwnRecords `json:"ownRecords"`
	// Standby is the state of a standby; nil for another management cluster.
	Standby *Standby `json:"standby,omitempty"`
	// Unknown are the parts of the report that could not be read. An empty list in such a part does not mean that there is nothing.
	Unknown []string `json:"unknown"`
	// Problems are the reasons why Ready is false, in the order of the tree.
	Problems []Problem `json:"problems"`
}

// Cluster is the management cluster itself.
type Cluster struct {
	Name       string `json:"name"`
	Fleet      string `json:"fleet,omitempty"`
	Host       string `json:"host"`
	State      string `json:"state"`
	Kubernetes string `json:"kubernetesVersion,omitempty"`
	PivotedTo  string `json:"pivotedTo,omitempty"`
	Ephemeral  bool   `json:"ephemeral,omitempty"`
}

// Git is the fleet repo on this machine.
type Git struct {
	Repo     string `json:"repo,omitempty"`
	Branch   string `json:"branch,omitempty"`
	Revision string `json:"revision,omitempty"`
	// Served tells whether a fleet repo without a remote is being served to Flux; nil with a remote.
	Served *bool `json:"served,omitempty"`
}

// Item is a provider or another component with a version and a state.
type Item struct {
	Name      string `json:"name"`
	Type      string `json:"type,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Version   string `json:"version,omitempty"`
	Ready     bool   `json:"ready"`
	Reason    string `json:"reason,omitempty"`
	// CredentialsUntil is when the provider's first credential ends; nil if no end is known.
	CredentialsUntil *time.Time `json:"credentialsUntil,omitempty"`

	deployment string // the Deployment that Reason is about
}

// Flux is what Flux follows and applies.
type Flux struct {
	Installed   bool     `json:"installed"`
	Version     string   `json:"version,omitempty"`
	Controllers []Item   `json:"controllers"`
	Sources     []Object `json:"sources"`
	Applied     []Object `json:"applied"`
}

// Object is one Flux object.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Revision  string `json:"revision,omitempty"`
	Ready     bool   `json:"ready"`
	Suspended bool   `json:"suspended,omitempty"`
	// SuspendedInGit means that the object is suspended in Git. Otherwise it was suspended on the cluster.
	SuspendedInGit bool   `json:"suspendedInGit,omitempty"`
	Reason         string `json:"reason,omitempty"`

	workload   string // its part in installing Flux on a workload cluster
	byFleetctl bool   // suspended by a command of fleetctl that has not ended yet
	letGo      bool   // suspended because its cluster is handed over, detached or drained
	behind     string // what to do if it is not Ready only because it is at another revision than its source
	// pauses: its environment is paused in Git. pausedWith is the Kustomization of the environment with which the object was paused.
	pauses     bool
	pausedWith kube.Key
}

// Fleet is one workload cluster.
type Fleet struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Phase     string `json:"phase,omitempty"`
	Version   string `json:"version,omitempty"`
	Available bool   `json:"available"`
	// Ready: the cluster is Available, and its apps are applied.
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"`
	// Owner is the management cluster that manages this workload cluster: the one in its record if it was handed over,
	// otherwise the one that was asked.
	Owner string `json:"owner"`
	// Elsewhere: the owner is not the management cluster that was asked.
	Elsewhere bool `json:"elsewhere,omitempty"`
	// TwoOwners: the management cluster that was asked acts on the cluster, although the owner is another one, or the
	// cluster's own record names another one of the fleet.
	TwoOwners bool `json:"twoOwners,omitempty"`
	// OwnRecord is what the cluster itself says of its owner; nil if it says nothing, or was not asked.
	OwnRecord *OwnRecord `json:"ownRecord,omitempty"`
	// CopyOf is the management cluster that has the cluster, if this one holds only a copy in the middle of a hand-over.
	CopyOf string `json:"copyOf,omitempty"`
	// Endpoint of its API server.
	Endpoint string `json:"endpoint,omitempty"`
	// Troubles from the cluster's conditions, one for each cause.
	Troubles []Trouble `json:"troubles"`
	// Flux of the cluster; nil if the cluster gets no Flux.
	Flux         *WorkloadFlux `json:"flux,omitempty"`
	Paused       bool          `json:"paused,omitempty"`
	Deleting     bool          `json:"deleting,omitempty"`
	ControlPlane Replicas      `json:"controlPlane"`
	Workers      Replicas      `json:"workers"`
	Conditions   []Condition   `json:"conditions"`
	Machines     []Machine     `json:"machines"`

	record capi.Owner
	// own is the cluster's own record of its owner, as it was read; nil if there is none.
	own *handover.OwnRecord
	// contradicted: own names another management cluster of the fleet than the one that was asked.
	contradicted bool
	// damaged: the record of its owner names none.
	damaged bool
}

// WorkloadFlux is the state of the Flux that applies a workload cluster's apps.
type WorkloadFlux struct {
	// Mode is own, or remote if the management cluster's Flux applies them.
	Mode string `json:"mode"`
	// Ready: its first revision is applied.
	Ready bool `json:"ready"`
	// Revision that the management cluster has last applied there.
	Revision string `json:"revision,omitempty"`
	// Reason names the part that the others wait for, and why it is not Ready.
	Reason string `json:"reason,omitempty"`

	hint string // what to do about it
}

// Trouble is a fault that a condition reports.
type Trouble struct {
	Condition string `json:"condition"`
	Reason    string `json:"reason"`
	// Waiting: the condition only waits for another object.
	Waiting bool `json:"waiting,omitempty"`
}

// Replicas counts machines.
type Replicas struct {
	Desired int32 `json:"desired"`
	Ready   int32 `json:"ready"`
}

// Condition is a condition of a workload cluster.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Machine is one machine of a workload cluster.
type Machine struct {
	Name         string `json:"name"`
	Node         string `json:"node,omitempty"`
	Version      string `json:"version,omitempty"`
	Phase        string `json:"phase,omitempty"`
	ControlPlane bool   `json:"controlPlane,omitempty"`
	Ready        bool   `json:"ready"`
	Reason       string `json:"reason,omitempty"`
}

// Problem is one thing that is not healthy.
type Problem struct {
	Object string `json:"object"`
	// Condition of the object that reports the problem; empty if none does.
	Condition string `json:"condition,omitempty"`
	Reason    string `json:"reason"`
	Hint      string `json:"hint,omitempty"`
}

// The parts that Unknown names, and other sources.
const (
	repoServer    = "fleet repo server"
	apiServer     = "API server"
	partProviders = "providers"
	partFlux      = "Flux"
	partClusters  = "workload clusters"
	partClaim     = "its claim to the fleet"
	partPlace     = "its place in the fleet"
)

func (r *Report) knows(part string) bool { return !slices.Contains(r.Unknown, part) }

// blame adds a problem and makes the report not Ready.
func (r *Report) blame(object, reason, hint string) {
	if reason == "" {
		reason = "not ready"
	}
	r.Ready = false
	r.Problems = append(r.Problems, Problem{Object: object, Reason: reason, Hint: hint})
}
