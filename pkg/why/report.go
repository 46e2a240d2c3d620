// Package why looks at one workload cluster in depth. It follows the commit through Flux and Cluster API to the
// provider's own objects, finds the first broken object, and names the remedy if one is known.
package why

import (
	"time"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Stage is a part of the chain from a commit to a running cluster.
type Stage string

// The stages, in the order of the chain.
const (
	StageCommit        Stage = "commit"
	StageSource        Stage = "Flux source"
	StageKustomization Stage = "Kustomization"
	StageRelease       Stage = "HelmRelease"
	StageControllers   Stage = "providers"
	StageCluster       Stage = "Cluster API"
	StageProvider      Stage = "provider"
	StageWorkloadFlux  Stage = "workload Flux"
)

// State is the state of a link.
type State string

// The states of a link.
const (
	StateOK      State = "ok"
	StateWaiting State = "waiting"
	StateWrong   State = "wrong"
	StateAbsent  State = "absent"
	StateUnknown State = "unknown"
)

// Report says why a cluster differs from Git, or that it does not.
type Report struct {
	// Management is the management cluster that was asked. Commands in the report's texts are about it.
	Management string `json:"-"`

	FormatVersion string    `json:"formatVersion"`
	Time          time.Time `json:"time"`
	// Cluster is NAMESPACE/NAME.
	Cluster string `json:"cluster"`
	Ready   bool   `json:"ready"`
	// Causes are the troubles that no other trouble explains, as far as this can be told. The first one is the first
	// cause.
	Causes []Cause `json:"causes"`
	// Chain has the objects from the commit to the cloud.
	Chain []Link `json:"chain"`
	// Unknown are the parts of the chain that could not be read.
	Unknown []string `json:"unknown"`
}

// Link is one object of the chain.
type Link struct {
	Stage    Stage     `json:"stage"`
	Object   string    `json:"object"`
	State    State     `json:"state"`
	Detail   string    `json:"detail,omitempty"`
	Troubles []Trouble `json:"troubles"`

	kind string
}

// Trouble is what a condition reports about an object.
type Trouble struct {
	Condition string     `json:"condition,omitempty"`
	Reason    string     `json:"reason"`
	Since     *time.Time `json:"since,omitempty"`
	Waiting   bool       `json:"waiting,omitempty"`

	code string // the condition's own reason
}

// Cause is a trouble that no other trouble of the chain explains.
type Cause struct {
	Stage     Stage      `json:"stage"`
	Object    string     `json:"object"`
	Condition string     `json:"condition,omitempty"`
	Reason    string     `json:"reason"`
	Since     *time.Time `json:"since,omitempty"`
	// Words are the last warnings about the object, in the words of its controller or cloud.
	Words []string `json:"words"`
	// Remedy is the known remedy; nil if there is none.
	Remedy *Remedy `json:"remedy,omitempty"`
}

func troublesOf(all []kube.Trouble) []Trouble {
	out := []Trouble{}
	for _, t := range all {
		out = append(out, Trouble{Condition: t.Condition, Reason: t.Text(), Since: since(t.Since), Waiting: t.Waiting, code: t.Reason})
	}
	return out
}

func since(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func (l *Link) judge() {
	l.State = StateOK
	for _, t := range l.Troubles {
		if !t.Waiting {
			l.State = StateWrong
			return
		}
		l.State = StateWaiting
	}
}

func (l *Link) broken() bool { return l.State != StateOK }
