// Package status collects what there is to say of a management cluster, side by side, into one Report. A source that fails is a
// field of the report, not the end of it.
package status

import (
	"slices"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
)

// Report is one look at a management cluster and all that hangs on it.
type Report struct {
	FormatVersion string    `json:"formatVersion"`
	Time          time.Time `json:"time"`
	Ready         bool      `json:"ready"`
	Cluster       Cluster   `json:"managementCluster"`
	Git           Git       `json:"git"`
	Providers     []Item    `json:"providers"`
	Flux          Flux      `json:"flux"`
	Clusters      []Fleet   `json:"clusters"`
	// Standby is what there is to say of one that waits to take over from another; nil for a management cluster that works.
	Standby *Standby `json:"standby,omitempty"`
	// Unknown are the parts of the report that could not be asked: nothing in them is not "there is nothing".
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
	// Served tells, for a fleet repo without a remote, that it is being served to Flux.
	Served *bool `json:"served,omitempty"`
}

// Item is a provider, or another thing with a version that is ready or says why not.
type Item struct {
	Name      string `json:"name"`
	Type      string `json:"type,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Version   string `json:"version,omitempty"`
	Ready     bool   `json:"ready"`
	Reason    string `json:"reason,omitempty"`
	// CredentialsUntil is when the first of what a provider was given ends; nil where no end is known.
	CredentialsUntil *time.Time `json:"credentialsUntil,omitempty"`
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
	// SuspendedInGit tells that Git says so; else it was done on the cluster at once.
	SuspendedInGit bool   `json:"suspendedInGit,omitempty"`
	Reason         string `json:"reason,omitempty"`

	workload   string // its part in bringing Flux to a workload cluster
	byFleetctl bool   // suspended by a command that is not at its end
}

// Fleet is one workload cluster.
type Fleet struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Phase     string `json:"phase,omitempty"`
	Version   string `json:"version,omitempty"`
	Available bool   `json:"available"`
	// Ready: Available, and what its environment's clusters run is applied there.
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"`
	// Owner is the management cluster that manages it: by its record, since it changed hands, else the one that was asked.
	Owner string `json:"owner"`
	// Endpoint of its API server.
	Endpoint string `json:"endpoint,omitempty"`
	// Troubles are what is wrong with it, one a cause, as its conditions have it.
	Troubles []Trouble `json:"troubles"`
	// Flux of the cluster; nil where it is to have none.
	Flux         *WorkloadFlux `json:"flux,omitempty"`
	Paused       bool          `json:"paused,omitempty"`
	Deleting     bool          `json:"deleting,omitempty"`
	ControlPlane Replicas      `json:"controlPlane"`
	Workers      Replicas      `json:"workers"`
	Conditions   []Condition   `json:"conditions"`
	Machines     []Machine     `json:"machines"`

	record capi.Owner
}

// WorkloadFlux is what applies what a workload cluster runs.
type WorkloadFlux struct {
	// Mode is own, or remote where the management cluster's Flux does it.
	Mode string `json:"mode"`
	// Ready: its first revision is applied.
	Ready bool `json:"ready"`
	// Revision that the management cluster has brought there last.
	Revision string `json:"revision,omitempty"`
	// Reason says which part holds the others, and why.
	Reason string `json:"reason,omitempty"`
}

// Trouble is one thing that a condition says is not as it should be.
type Trouble struct {
	Condition string `json:"condition"`
	Reason    string `json:"reason"`
	// Waiting: by its own words it waits for something else.
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
	// Condition of the object that says so, where one does.
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
