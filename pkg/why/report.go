// Package why looks at one workload cluster in depth: the way from a commit through Flux and Cluster API to its provider's own objects,
// where that way is broken, and what is known to mend it.
package why

import (
	"time"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Stage is a part of the way from a commit to a cluster that runs.
type Stage string

// The stages, in the order of the way.
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

// State is how a link of the way is.
type State string

// The states of a link.
const (
	StateOK      State = "ok"
	StateWaiting State = "waiting"
	StateWrong   State = "wrong"
	StateAbsent  State = "absent"
	StateUnknown State = "unknown"
)

// Report says why a cluster is not as Git has it, or that it is.
type Report struct {
	FormatVersion string    `json:"formatVersion"`
	Time          time.Time `json:"time"`
	// Cluster is NAMESPACE/NAME.
	Cluster string `json:"cluster"`
	Ready   bool   `json:"ready"`
	// Causes are what everything else follows from, as far as can be told; the first cause is the first.
	Causes []Cause `json:"causes"`
	// Chain is the way from the commit to the cloud.
	Chain []Link `json:"chain"`
	// Unknown are the parts of the way that could not be asked.
	Unknown []string `json:"unknown"`
}

// Link is one object on the way.
type Link struct {
	Stage    Stage     `json:"stage"`
	Object   string    `json:"object"`
	State    State     `json:"state"`
	Detail   string    `json:"detail,omitempty"`
	Troubles []Trouble `json:"troubles"`

	kind string
}

// Trouble is what a condition says against an object.
type Trouble struct {
	Condition string     `json:"condition,omitempty"`
	Reason    string     `json:"reason"`
	Since     *time.Time `json:"since,omitempty"`
	Waiting   bool       `json:"waiting,omitempty"`

	code string // the condition's own reason
}

// Cause is a trouble that nothing else on the way explains.
type Cause struct {
	Stage     Stage      `json:"stage"`
	Object    string     `json:"object"`
	Condition string     `json:"condition,omitempty"`
	Reason    string     `json:"reason"`
	Since     *time.Time `json:"since,omitempty"`
	// Words are the last warnings about the object, as its controller, or the cloud behind it, put them.
	Words []string `json:"words"`
	// Remedy is what is known to mend it; nil where nothing is.
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
